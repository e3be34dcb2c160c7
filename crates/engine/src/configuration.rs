//! One configuration of a box.

use crate::context::BoxContext;
use crate::environment::BoxEnvironment;
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_lang::{Compiled, Diagnostic, Library};
use packet::Timestamp;
use router::{Options, Registry, Router};

/// The classes of the element library. As a constant it would have them all compiled once more, for this crate.
pub(crate) fn registry() -> Registry {
    Registry::new(elements::REGISTRY)
}

/// Dropped packets by reason.
pub(crate) type Drops = BTreeMap<Cow<'static, str>, u64>;

/// A configuration that runs.
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) router: Router,
    /// When its next timer comes.
    pub(crate) next: Option<Timestamp>,
    /// Packets that its elements made as they began.
    pub(crate) template_packets: usize,
}

/// The text's name in messages.
pub(crate) fn file(name: &str) -> &str {
    if name.is_empty() { "config" } else { name }
}

/// Compiles a text. Libraries that it requires are looked for among the box's files.
pub(crate) fn compile(context: &BoxContext, file: &str, text: &str) -> Compiled {
    let is_class = |name: &str| registry().has(name);
    let names: Vec<&str> = registry().classes().map(|class| class.info.name).collect();
    let reader = |name: &str, _: &str| {
        let files = context.files.borrow();
        let text = core::str::from_utf8(files.get(name)?).ok()?;
        Some(Library { path: name.into(), text: text.into() })
    };
    let mut options = click_lang::Options::new(file, &is_class);
    options.class_names = &names;
    options.reader = Some(&reader);
    click_lang::compile(text, &options)
}

impl Configuration {
    /// Makes a configuration out of its text; its warnings.
    ///
    /// # Errors
    ///
    /// What was found, with all errors.
    pub(crate) fn make(
        context: &Rc<BoxContext>,
        name: &str,
        text: &str,
    ) -> Result<(Configuration, Vec<Diagnostic>), Vec<Diagnostic>> {
        let environment = Rc::new(BoxEnvironment::new(context, name));
        let compiled = compile(context, file(name), text);
        if compiled.has_errors() {
            return Err(compiled.diagnostics);
        }
        let options = Options { stop_when_idle: false, source: text.to_string(), ..Options::default() };
        let before = context.pool.live();
        let router = Router::in_pool(compiled.graph, registry(), environment, options, context.pool.clone())?;
        let mut warnings = compiled.diagnostics;
        warnings.extend_from_slice(router.warnings());
        let template_packets = context.pool.live().saturating_sub(before);
        Ok((Configuration { name: name.into(), router, next: None, template_packets }, warnings))
    }

    /// Puts another text in its place, with the state carried over; its warnings. What was dropped so far is added to
    /// `drops`.
    pub(crate) fn swap(
        &mut self,
        context: &BoxContext,
        text: &str,
        drops: &mut Drops,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let compiled = compile(context, file(&self.name), text);
        if compiled.has_errors() {
            return Err(compiled.diagnostics);
        }
        let mut all = drops.clone();
        self.add_drops(&mut all);
        let before = context.pool.live();
        self.router.swap(compiled.graph, text.to_string())?;
        // What waits in queues was carried over.
        self.template_packets = (self.template_packets + context.pool.live()).saturating_sub(before);
        *drops = all;
        let mut warnings = compiled.diagnostics;
        warnings.extend_from_slice(self.router.warnings());
        Ok(warnings)
    }

    /// Gives it a turn; whether there was anything to do.
    pub(crate) fn turn(&mut self) -> bool {
        let turn = self.router.turn();
        self.next = turn.next;
        turn.worked
    }

    /// Adds what its elements dropped.
    pub(crate) fn add_drops(&self, drops: &mut Drops) {
        for loss in self.router.losses() {
            *drops.entry(loss.reason).or_default() += loss.packets;
        }
    }
}
