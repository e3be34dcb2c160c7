//! The links between fabrics that are kept.

use api::{Owner, PortName, SwitchName};
use std::collections::BTreeSet;

/// The near end of a link.
pub(super) type LinkKey = (Owner, SwitchName, PortName);

/// Proxies, and links that could not be made yet.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The proxies that exist: the owner of the boxes, and the switch.
    pub(super) proxies: BTreeSet<(Owner, SwitchName)>,
    /// The near ends of links of which one fabric was not there.
    pub(super) broken: BTreeSet<LinkKey>,
}
