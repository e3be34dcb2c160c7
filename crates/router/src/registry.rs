//! The classes that a router may make elements of.

use element::Class;

/// Classes by group; a router is handed one and names no class itself.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    groups: &'static [&'static [Class]],
}

impl Registry {
    /// Of these groups.
    pub const fn new(groups: &'static [&'static [Class]]) -> Registry {
        Registry { groups }
    }

    /// All classes, in order.
    pub fn classes(&self) -> impl Iterator<Item = &'static Class> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The class called `name`, by its own name or an alias.
    pub fn find(&self, name: &str) -> Option<&'static Class> {
        self.classes().find(|class| class.is_called(name))
    }

    /// Whether there is a class called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
