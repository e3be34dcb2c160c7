//! What a router is made with.

use alloc::rc::Rc;

use element::Environment;
use packet::Pool;

use crate::options::Options;
use crate::predecessors::ElementsBefore;
use crate::registry::Registry;

/// What a router is made with, besides its graph.
pub(crate) struct Parts {
    pub(crate) registry: Registry,
    pub(crate) environment: Rc<dyn Environment>,
    pub(crate) options: Options,
    pub(crate) pool: Option<Pool>,
    /// The elements of the configuration that it replaces.
    pub(crate) before: Option<ElementsBefore>,
}
