//! Names that configurations define for addresses, ports, fields and other numbers.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::RefCell;

/// The kind of object that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// An IPv4 address: four bytes.
    Ip4,
    /// An IPv4 prefix: address and mask, eight bytes.
    Ip4Prefix,
    /// An IPv6 address: sixteen bytes.
    Ip6,
    /// An IPv6 prefix: address and a length byte.
    Ip6Prefix,
    /// A link address: six bytes.
    Mac,
    /// A TCP port: two bytes, network byte order.
    TcpPort,
    /// A UDP port: two bytes, network byte order.
    UdpPort,
    /// An IP protocol: one byte.
    Protocol,
    /// An ICMP type: one byte.
    IcmpType,
    /// A packet field, numbered as in the filter language: four bytes, host byte order.
    Field,
    /// An annotation: offset and size, one byte each.
    Annotation,
    /// A rewriter pattern: a shared object.
    Pattern,
    /// Marks that a script drives the router, whether or not it is valid.
    Driver,
}

/// Names by kind and scope. A name defined in a compound element is visible only inside it, where it shadows outer
/// definitions.
#[derive(Debug, Default)]
pub struct Names {
    defined: RefCell<BTreeMap<(NameKind, String), Vec<u8>>>,
    shared: RefCell<BTreeMap<(NameKind, String), Rc<dyn Any>>>,
}

impl Names {
    /// An empty table.
    pub fn new() -> Names {
        Names::default()
    }

    /// Defines `name` in the compound element `scope` (empty for the top level).
    pub fn define(&self, kind: NameKind, scope: &str, name: &str, value: &[u8]) {
        self.defined.borrow_mut().insert((kind, qualify(scope, name)), value.to_vec());
    }

    /// Looks up `name` in `scope`, then in each enclosing scope.
    pub fn find(&self, kind: NameKind, scope: &str, name: &str) -> Option<Vec<u8>> {
        seen_from(&self.defined.borrow(), kind, scope, name)
    }

    /// Defines `name` as an object that is shared by all elements that look it up.
    pub fn share(&self, kind: NameKind, scope: &str, name: &str, value: Rc<dyn Any>) {
        self.shared.borrow_mut().insert((kind, qualify(scope, name)), value);
    }

    /// Looks up the shared object `name` from `scope`, if it is a `T`.
    pub fn shared<T: 'static>(&self, kind: NameKind, scope: &str, name: &str) -> Option<Rc<T>> {
        seen_from(&self.shared.borrow(), kind, scope, name)?.downcast().ok()
    }
}

/// The innermost definition of `name` visible from `scope`.
fn seen_from<V: Clone>(
    defined: &BTreeMap<(NameKind, String), V>,
    kind: NameKind,
    scope: &str,
    name: &str,
) -> Option<V> {
    let mut scope = scope;
    loop {
        if let Some(value) = defined.get(&(kind, qualify(scope, name))) {
            return Some(value.clone());
        }
        if scope.is_empty() {
            return None;
        }
        scope = scope.rsplit_once('/').map_or("", |(outer, _)| outer);
    }
}

fn qualify(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_string() } else { [scope, name].join("/") }
}
