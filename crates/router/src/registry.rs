//! The classes that a router can create elements of.

use click_lang::Graph;
use element::Class;

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

    /// The class with this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Class> {
        self.classes().find(|class| class.has_name(name))
    }

    /// Replaces aliases in element declarations by the class's own name, which messages and handlers show.
    pub(crate) fn name_classes(&self, graph: &mut Graph) {
        for element in &mut graph.elements {
            if let Some(class) = self.find(&element.class).filter(|class| class.info.name != element.class) {
                element.class = class.info.name.into();
            }
        }
    }

    /// Whether there is a class called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
