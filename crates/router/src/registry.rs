//! The classes that a router can create elements of.

use alloc::format;
use alloc::vec::Vec;

use click_lang::steps::pause_every;
use click_lang::{ArgumentFinder, Diagnostic, Graph, Severity};
use element::Class;

use crate::step_sizes::ELEMENTS_A_STEP;

/// Classes by group. A router receives its registry and names no class itself.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    groups: &'static [&'static [Class]],
}

impl Registry {
    /// A registry of these groups.
    pub const fn new(groups: &'static [&'static [Class]]) -> Registry {
        Registry { groups }
    }

    /// All classes, in order.
    pub fn classes(&self) -> impl Iterator<Item = &'static Class> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The class with this name, by its own name or another one.
    pub fn find(&self, name: &str) -> Option<&'static Class> {
        // Most are called by their own name. The lists of other names are elsewhere in memory, and not in the cache.
        let own = self.classes().find(|class| class.info.name == name);
        own.or_else(|| self.classes().find(|class| class.has_name(name)))
    }

    /// Replaces other names of classes in element declarations by the class's own name, which messages and handlers
    /// show, and translates arguments that belong to such a name. Returns warnings about arguments without effect.
    pub(crate) async fn name_classes(&self, graph: &mut Graph) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (index, element) in graph.elements.iter_mut().enumerate() {
            pause_every(ELEMENTS_A_STEP, index).await;
            let Some(class) = self.find(&element.class).filter(|class| class.info.name != element.class)
            else {
                continue;
            };
            if let Some(other) = class.other_name(&element.class) {
                let is_required = class.info.arguments().any(|argument| argument.required);
                let (config, warnings) = other.translate(&element.config, is_required);
                let mut finder = ArgumentFinder::new(element);
                for (argument, message) in warnings {
                    let location = finder.find(&argument).unwrap_or_else(|| element.location.clone());
                    let message = format!("{} ‘{}’: {message}", element.class, element.name);
                    found.push(Diagnostic::new(Severity::Warning, location, message));
                }
                if config != element.config {
                    (element.config, element.is_verbatim) = (config, false);
                }
            }
            element.class = class.info.name.into();
        }
        found
    }

    /// Whether there is a class called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
