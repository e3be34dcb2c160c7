//! Elements that route packets by longest-prefix match.

mod arguments;
mod changes;
mod commands;
mod directiplookup;
mod filling;
mod forward;
mod lineariplookup;
mod lookupip6route;
mod lookupiproutemp;
mod radixiplookup;
mod rangeiplookup;
mod staticiplookup;
mod table;

pub use directiplookup::DirectIPLookup;
pub use lineariplookup::LinearIPLookup;
pub use lookupip6route::LookupIP6Route;
pub use lookupiproutemp::LookupIPRouteMP;
pub use radixiplookup::RadixIPLookup;
pub use rangeiplookup::RangeIPLookup;
pub use staticiplookup::StaticIPLookup;

element::classes![
    LinearIPLookup,
    StaticIPLookup,
    RadixIPLookup,
    DirectIPLookup,
    RangeIPLookup,
    LookupIPRouteMP,
    LookupIP6Route,
];
