//! One configuration of a box.

use crate::context::BoxContext;
use crate::environment::BoxEnvironment;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_lang::steps::complete;
use click_lang::{Compiled, Diagnostic, Library};
use packet::Timestamp;
use router::{Options, PreparedSuccessor, Router, Swap};

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
    complete(compile_in_steps(context, file, text))
}

/// Compiles a text like [`compile`], in steps.
async fn compile_in_steps(context: &BoxContext, file: &str, text: &str) -> Compiled {
    with_options(context, file, async |options| click_lang::compile_in_steps(text, options).await).await
}

/// Calls `run` with the options with which the box's configurations are compiled.
pub(crate) async fn with_options<R>(
    context: &BoxContext,
    file: &str,
    run: impl AsyncFnOnce(&click_lang::Options<'_>) -> R,
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
    let parameters = context.parameters.borrow().clone();
    options.parameters = &parameters;
    run(&options).await
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
        let shard = context.shard.get();
        // With several shards, the host replaces the configuration in all of them.
        let allow_reconfigure = shard.count == 1;
        let options = Options {
            stop_when_idle: false,
            report_writes: true,
            source,
            shard,
            allow_reconfigure,
            ..Options::default()
        };
        let before = context.pool.packets();
        let router =
            Router::with_pool(compiled.graph, context.registry, environment, options, context.pool.clone())?;
        let mut warnings = compiled.diagnostics;
        warnings.extend_from_slice(router.warnings());
        let template_packets = context.pool.packets().saturating_sub(before);
        Ok((Configuration { name: name.into(), router, next_timer: None, template_packets }, warnings))
    }

    /// Begins to replace the text, and to carry the state over.
    pub(crate) fn begin_swap(&self, context: &Rc<BoxContext>, text: &str) -> Swap {
        let (context, name, copy) = (context.clone(), self.name.clone(), text.to_string());
        let compile = async move { compile_in_steps(&context, file(&name), &copy).await };
        self.router.begin_swap(Box::pin(compile), text.to_string())
    }

    /// Continues to replace the text. Returns the warnings when the new one runs.
    pub(crate) fn continue_swap(
        &mut self,
        context: &BoxContext,
        swap: &mut Swap,
    ) -> Option<Result<Vec<Diagnostic>, Vec<Diagnostic>>> {
        let before = context.pool.packets();
        let result = self.router.continue_swap(swap);
        // Packets that wait in queues are carried over at the end.
        self.template_packets = (self.template_packets + context.pool.packets()).saturating_sub(before);
        Some(result?.map(|()| self.router.warnings().to_vec()))
    }

    /// Continues to prepare what replaces the text. Returns it with the warnings when it can take over.
    pub(crate) fn continue_to_stage(
        &mut self,
        context: &BoxContext,
        swap: &mut Swap,
    ) -> Option<PreparedSuccessor> {
        let before = context.pool.packets();
        let result = self.router.continue_to_stage(swap);
        self.template_packets = (self.template_packets + context.pool.packets()).saturating_sub(before);
        result
    }

    /// Gives it a turn. Returns whether there was work.
    pub(crate) fn turn(&mut self) -> bool {
        let turn = self.router.turn();
        self.next_timer = turn.next;
        turn.worked
    }
}
