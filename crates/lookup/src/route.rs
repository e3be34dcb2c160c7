//! Routes, and the interface of route tables.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use packet::Ip4Prefix;

/// The next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop<A> {
    /// The address of the next router, if any.
    pub gateway: Option<A>,
    /// The output port.
    pub port: usize,
}

/// An IPv4 route. Displayed as `ADDR/MASK GATEWAY OUTPUT`, where `-` stands for no gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination addresses. Bits outside the mask are zero.
    pub prefix: Ip4Prefix,
    /// The address of the next router; 0.0.0.0 means none.
    pub gateway: Ipv4Addr,
    /// The output port; a negative number means any.
    pub port: i32,
}

impl Route {
    /// The hop; `None` if the route has no output port.
    #[inline]
    pub fn hop(&self) -> Option<NextHop<u32>> {
        let gateway = Some(self.gateway.to_bits()).filter(|&gateway| gateway != 0);
        Some(NextHop { gateway, port: usize::try_from(self.port).ok()? })
    }

    /// The route of a prefix.
    pub fn new(prefix: Ip4Prefix, hop: NextHop<u32>) -> Route {
        let gateway = Ipv4Addr::from_bits(hop.gateway.unwrap_or(0));
        Route { prefix, gateway, port: i32::try_from(hop.port).unwrap_or(i32::MAX) }
    }

    /// Whether a request to remove this route applies to `other`. A negative port matches any gateway and port.
    pub fn removes(&self, other: &Route) -> bool {
        self.prefix == other.prefix
            && (self.port < 0 || (self.gateway == other.gateway && self.port == other.port))
    }

    /// The route as a line of a table: prefix, gateway and output, separated by tabs.
    pub fn line(&self) -> String {
        let prefix = self.prefix.to_string();
        let gateway = self.gateway_text();
        let tabs = |wide: bool| if wide { "\t" } else { "\t\t" };
        let (first, second) = (tabs(prefix.len() >= 16), tabs(gateway.len() >= 8));
        format!("{prefix}{first}{gateway}{second}{}", self.port)
    }

    fn gateway_text(&self) -> String {
        if self.gateway.is_unspecified() { "-".to_string() } else { self.gateway.to_string() }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.prefix, self.gateway_text(), self.port)
    }
}

/// The reason why a route can't be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// The mask is not contiguous.
    Mask,
    /// The route has no output port.
    Port,
    /// There are too many distinct hops.
    Full,
}

impl core::error::Error for RouteError {}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RouteError::Mask => "mask is not a prefix",
            RouteError::Port => "bad OUTPUT",
            RouteError::Full => "no memory to store route",
        })
    }
}

/// A table that maps addresses of type `A` to hops.
pub trait Lookup<A> {
    /// Finds the hops of many addresses: `hops[i]` becomes a number for `hop`, or `NO_HOP`.
    fn lookup_batch(&mut self, addresses: &[A], hops: &mut [u32]);

    /// The hop with this number.
    fn hop(&self, number: u32) -> Option<NextHop<A>>;
}

/// A table that is filled, changed and freed in steps.
pub trait StepwiseTable {
    /// Defers changes until they are applied: lookups don't see them, and bulk changes cost less.
    fn defer_updates(&mut self);

    /// Applies the deferred changes.
    fn apply_updates(&mut self);

    /// Performs a step of applying the deferred changes. Returns whether it was the last. Until then lookups see none of
    /// them, and further changes are deferred too.
    fn apply_some_updates(&mut self) -> bool;

    /// Frees some of the memory of a table that is no longer used. Returns whether nothing large is left.
    fn free_some(&mut self) -> bool;
}

/// A table of IPv4 routes.
pub trait RouteStore: Lookup<u32> + StepwiseTable {
    /// The route of exactly this prefix.
    fn get(&self, prefix: Ip4Prefix) -> Option<Route>;

    /// Adds or replaces a route and returns the replaced one.
    fn set(&mut self, route: Route) -> Result<Option<Route>, RouteError>;

    /// Removes the route of exactly this prefix.
    fn remove(&mut self, prefix: Ip4Prefix) -> Option<Route>;

    /// All routes, in display order.
    fn routes(&self) -> Vec<Route>;

    /// The route of an address.
    fn lookup(&self, address: Ipv4Addr) -> Option<NextHop<u32>>;

    /// Removes all routes.
    fn clear(&mut self);
}
