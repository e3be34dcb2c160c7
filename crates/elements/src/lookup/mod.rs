//! Longest-prefix match, and the elements that route by it.

use element::Class;

mod commands;
mod directiplookup;
mod forward;
mod ip4;
mod ip6;
mod linear;
mod lineariplookup;
mod lookupip6route;
mod lookupiproutemp;
mod node;
mod prefix;
mod radixiplookup;
mod rangeiplookup;
mod route;
mod routes;
mod slots;
mod staticiplookup;
mod table;
mod trie;

pub use directiplookup::DirectIPLookup;
pub use ip4::Ip4Table;
pub use ip6::Ip6Table;
pub use linear::LinearRoutes;
pub use lineariplookup::LinearIPLookup;
pub use lookupip6route::LookupIP6Route;
pub use lookupiproutemp::LookupIPRouteMP;
pub use prefix::{Address, Prefix};
pub use radixiplookup::RadixIPLookup;
pub use rangeiplookup::RangeIPLookup;
pub use route::{Hop, Lookup, Route, RouteError, RouteStore, RouteToRemove};
pub use routes::{Ip4Routes, Routes};
pub use staticiplookup::StaticIPLookup;
pub use trie::{Entry, HopTooLarge, MAX_HOP, NO_HOP, PrefixTable};

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<LinearIPLookup>(),
    Class::of::<StaticIPLookup>(),
    Class::of::<RadixIPLookup>(),
    Class::of::<DirectIPLookup>(),
    Class::of::<RangeIPLookup>(),
    Class::of::<LookupIPRouteMP>(),
    Class::of::<LookupIP6Route>(),
];
