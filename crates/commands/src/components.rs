//! The parts that the program links, and passes to the commands.

use std::sync::OnceLock;

use element::{Class, ClassDocumentation};

/// The element library and the box images. The commands don't link them, so that they are not rebuilt when an element
/// changes.
#[derive(Clone, Copy, Debug)]
pub struct Components {
    /// The classes of the element library, by group.
    pub classes: &'static [&'static [Class]],
    /// The documentation of these classes, in the same order.
    pub documentation: &'static [&'static [&'static ClassDocumentation]],
    /// The image of boxes with the engine.
    pub box_image: &'static [u8],
    /// The fingerprint of that image, with which its file of symbols begins.
    pub box_image_fingerprint: &'static str,
    /// The image of boxes that measure sandboxes without an engine.
    pub probe_image: &'static [u8],
}

static COMPONENTS: OnceLock<Components> = OnceLock::new();

/// Sets the parts. [`main`](crate::main) calls it first.
pub(crate) fn set(components: Components) {
    // A second call would come from a second `main`, with the same parts.
    let _ = COMPONENTS.set(components);
}

/// The parts of this program.
#[cfg(not(test))]
pub(crate) fn get() -> &'static Components {
    COMPONENTS.get().expect("`main` sets the parts first")
}

/// The parts that unit tests use.
#[cfg(test)]
pub(crate) fn get() -> &'static Components {
    COMPONENTS.get_or_init(|| Components {
        classes: elements::REGISTRY,
        documentation: elements::DOCUMENTATION,
        box_image: &[],
        box_image_fingerprint: "",
        probe_image: &[],
    })
}
