//! One configuration of a box.

use crate::context::BoxContext;
use crate::environment::BoxEnvironment;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_lang::{Compiled, Diagnostic, Library};
use packet::Timestamp;
use router::{Options, Router};

/// A running configuration.
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) router: Router,
    /// When its next timer expires.
    pub(crate) next_timer: Option<Timestamp>,
    /// Packets that its elements created when they were initialized.
    pub(crate) template_packets: usize,
}

/// The text's name in messages.
pub(crate) fn file(name: &str) -> &str {
    if name.is_empty() { "config" } else { name }
}

/// Compiles a text. Libraries that it requires are looked up among the box's files.
pub(crate) fn compile(context: &BoxContext, file: &str, text: &str) -> Compiled {
    with_options(context, file, |options| click_lang::compile(text, options))
}

/// The options with which the box's configurations are compiled.
pub(crate) fn with_options<R>(
    context: &BoxContext,
    file: &str,
    run: impl FnOnce(&click_lang::Options) -> R,
) -> R {
    let is_class = |name: &str| context.registry.contains(name);
    let names: Vec<&str> = context.registry.classes().map(|class| class.info.name).collect();
    let reader = |name: &str, _: &str| {
        let files = context.files.borrow();
        let text = core::str::from_utf8(files.get(name)?).ok()?;
        Some(Library { path: name.into(), text: text.into() })
    };
    let mut options = click_lang::Options::new(file, &is_class);
    options.class_names = &names;
    options.reader = Some(&reader);
    let parameters = context.parameters.borrow();
    options.parameters = &parameters;
    run(&options)
}

impl Configuration {
    /// Creates a configuration from its text. Returns it with its warnings.
    ///
    /// # Errors
    ///
    /// All diagnostics, including all errors.
    pub(crate) fn new(
        context: &Rc<BoxContext>,
        name: &str,
        text: &str,
    ) -> Result<(Configuration, Vec<Diagnostic>), Vec<Diagnostic>> {
        let environment = Rc::new(BoxEnvironment::new(context, name));
        let compiled = compile(context, file(name), text);
        if compiled.has_errors() {
            return Err(compiled.diagnostics);
        }
        let source = text.to_string();
        let options = Options { stop_when_idle: false, report_writes: true, source, ..Options::default() };
        let before = context.pool.packets();
        let router =
            Router::with_pool(compiled.graph, context.registry, environment, options, context.pool.clone())?;
        let mut warnings = compiled.diagnostics;
        warnings.extend_from_slice(router.warnings());
        let template_packets = context.pool.packets().saturating_sub(before);
        Ok((Configuration { name: name.into(), router, next_timer: None, template_packets }, warnings))
    }

    /// Replaces the text, and carries the state over. Returns the warnings.
    pub(crate) fn swap(
        &mut self,
        context: &BoxContext,
        text: &str,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let compiled = compile(context, file(&self.name), text);
        if compiled.has_errors() {
            return Err(compiled.diagnostics);
        }
        let before = context.pool.packets();
        self.router.swap(compiled.graph, text.to_string())?;
        // Packets that wait in queues were carried over.
        self.template_packets = (self.template_packets + context.pool.packets()).saturating_sub(before);
        let mut warnings = compiled.diagnostics;
        warnings.extend_from_slice(self.router.warnings());
        Ok(warnings)
    }

    /// Gives it a turn. Returns whether there was work.
    pub(crate) fn turn(&mut self) -> bool {
        let turn = self.router.turn();
        self.next_timer = turn.next;
        turn.worked
    }
}
