//! Security associations: keys, sequence numbers and windows, by their number, the security parameters index (SPI).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::net::Ipv4Addr;

use element::{Context, SetupError};
use packet::Ip4Prefix;

use super::header::Header;
use super::replay::Window;
use super::transforms::{BLOCK, Keys, Transforms};

/// An association as a route states it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) spi: u32,
    pub(super) keys: Keys,
    /// The first sequence number.
    pub(super) first: u32,
    /// The size of the window, in packets.
    pub(super) window: u32,
}

/// An association.
pub(super) struct Association {
    keys: Keys,
    pub(super) transforms: Transforms,
    /// The sequence number of the next packet; beyond 32 bits after the last one.
    next: u64,
    /// What makes the initialisation vectors differ from those of other runs with the same keys. It is drawn for the first packet,
    /// because boxes may be copies of one that was configured before.
    salt: Option<u64>,
    pub(super) window: Window,
    /// Routes whose packets it protects.
    routes: u32,
    /// The source addresses of packets from the tunnel.
    sources: Vec<Ip4Prefix>,
}

/// Why an association can't be added.
pub(super) struct OtherKeys;

impl Association {
    /// The header of the next packet. `None` if all sequence numbers were used. `draw` gives random bits.
    pub(super) fn next_header(&mut self, spi: u32, draw: impl FnOnce() -> u64) -> Option<Header> {
        let sequence = u32::try_from(self.next).ok()?;
        self.next += 1;
        let own = *self.salt.get_or_insert_with(draw);
        // A number that differs for each packet, encrypted, is unpredictable without the key (NIST SP 800-38A, appendix C).
        let mut number = [0; BLOCK];
        let (salt, counter) = number.split_at_mut(BLOCK / 2);
        salt.copy_from_slice(&own.to_be_bytes());
        counter.copy_from_slice(&u64::from(sequence).to_be_bytes());
        Some(Header { spi, sequence, vector: self.transforms.encrypt_block(number) })
    }

    /// Goes on with another first sequence number and a window of another size.
    fn go_on(&mut self, first: u32, mut window: Window) {
        self.next = self.next.max(first.into());
        window.inherit(&self.window);
        self.window = window;
    }

    /// Whether packets from the tunnel may have this source address.
    pub(super) fn takes(&self, source: Ipv4Addr) -> bool {
        self.sources.iter().any(|prefix| prefix.contains(source))
    }
}

/// The associations of a route table.
///
/// One that no route uses any more stays, so that its sequence numbers go on if a route uses it again.
#[derive(Default)]
pub(super) struct Associations(BTreeMap<u32, Box<Association>>);

impl Associations {
    /// Adds a use of an association: for packets to the tunnel, or for packets from it with these sources.
    pub(super) fn acquire(
        &mut self,
        parameters: &Parameters,
        sources: Option<Ip4Prefix>,
    ) -> Result<(), OtherKeys> {
        let Parameters { spi, keys, first, window } = parameters;
        let create = || {
            let association = Association {
                keys: keys.clone(),
                transforms: Transforms::new(keys)?,
                next: u64::from(*first).max(1),
                salt: None,
                window: Window::new(*first, *window),
                routes: 0,
                sources: Vec::new(),
            };
            Some(Box::new(association))
        };
        let association = match self.0.entry(*spi) {
            Entry::Vacant(entry) => entry.insert(create().ok_or(OtherKeys)?),
            Entry::Occupied(entry) => {
                let association = entry.into_mut();
                if association.keys == *keys {
                    association.go_on(*first, Window::new(*first, *window));
                } else if association.routes > 0 || !association.sources.is_empty() {
                    return Err(OtherKeys);
                } else {
                    *association = create().ok_or(OtherKeys)?;
                }
                association
            }
        };
        match sources {
            Some(prefix) => association.sources.push(prefix),
            None => association.routes += 1,
        }
        Ok(())
    }

    /// Removes a use that was added.
    pub(super) fn release(&mut self, spi: u32, sources: Option<Ip4Prefix>) {
        let Some(association) = self.0.get_mut(&spi) else { return };
        match sources.map(|prefix| association.sources.iter().position(|source| *source == prefix)) {
            None => association.routes = association.routes.saturating_sub(1),
            Some(Some(position)) => drop(association.sources.swap_remove(position)),
            Some(None) => {}
        }
    }

    /// Whether packets from a tunnel may have this number.
    pub(super) fn receives(&self, spi: u32) -> bool {
        self.0.get(&spi).is_some_and(|association| !association.sources.is_empty())
    }

    /// Goes on with the sequence numbers and the windows of another table, where the keys are the same.
    pub(super) fn inherit(&mut self, old: &mut Associations) {
        for (spi, old) in core::mem::take(&mut old.0) {
            match self.0.entry(spi) {
                Entry::Vacant(entry) => {
                    let unused = Association { routes: 0, sources: Vec::new(), ..*old };
                    entry.insert(Box::new(unused));
                }
                Entry::Occupied(mut entry) if entry.get().keys == old.keys => {
                    let association = entry.get_mut();
                    association.next = association.next.max(old.next);
                    association.salt = old.salt;
                    association.window.inherit(&old.window);
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// The associations, one per line: SPI, next sequence number, highest one received.
    pub(super) fn list(&self) -> String {
        let used = self.0.iter().filter(|(_, one)| one.routes > 0 || !one.sources.is_empty());
        used.map(|(spi, one)| format!("{spi} {} {}\n", one.next, one.window.highest())).collect()
    }

    /// The association with this number.
    pub(super) fn find(&mut self, spi: u32) -> Option<&mut Association> {
        self.0.get_mut(&spi).map(|association| &mut **association)
    }

    /// A number that another table has too.
    pub(super) fn common(&self, other: &Associations) -> Option<u32> {
        self.0.keys().copied().find(|spi| other.0.contains_key(spi))
    }
}

/// The associations that a table shares with the elements that use them.
pub(super) type Shared = Rc<RefCell<Associations>>;

/// The associations of all route tables.
#[derive(Default)]
pub(super) struct Databases(Vec<Shared>);

/// The class of the elements with associations.
const TABLE_CLASS: &str = "RadixIPsecLookup";

impl Databases {
    /// Those of all tables of the router other than the calling element.
    pub(super) fn find(cx: &Context) -> Databases {
        let runtime = cx.runtime();
        let elements = (0..runtime.element_count())
            .filter(|element| *element != cx.element() && runtime.class_name(*element) == TABLE_CLASS);
        Databases(elements.filter_map(|element| runtime.export(element)?.downcast().ok()).collect())
    }

    /// Like `find`, for elements that need one.
    pub(super) fn require(cx: &Context) -> Result<Databases, SetupError> {
        let databases = Databases::find(cx);
        if databases.0.is_empty() {
            return Err(SetupError::new(format!("there are no keys: add a {TABLE_CLASS} with a tunnel")));
        }
        Ok(databases)
    }

    /// Uses the association with this number, if there is one.
    pub(super) fn with<R>(&self, spi: u32, mut use_it: impl FnMut(&mut Association) -> R) -> Option<R> {
        self.0.iter().find_map(|database| database.borrow_mut().find(spi).map(&mut use_it))
    }

    /// A number that one of them has in common with `own`.
    pub(super) fn common(&self, own: &Associations) -> Option<u32> {
        self.0.iter().find_map(|database| database.borrow().common(own))
    }
}
