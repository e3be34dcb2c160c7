//! Elements that route packets by longest-prefix match.

use element::Class;

mod arguments;
mod commands;
mod directiplookup;
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
