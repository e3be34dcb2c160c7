//! The example stacks between networks: their files, the hosts around them, and what has to pass.

use super::probe::PingAnswer;

/// A stack with its hosts and checks.
pub(super) struct ExampleStack {
    /// The name of its files in `examples/networks`, without extensions.
    pub(super) name: &'static str,
    /// The stack file.
    pub(super) stack: &'static str,
    /// The configuration.
    pub(super) configuration: &'static str,
    /// The hosts, each in a network namespace of its own.
    pub(super) hosts: &'static [Host],
    /// The checks, in order.
    pub(super) checks: &'static [Check],
}

/// A host, which is connected to the stack by a tap device.
pub(super) struct Host {
    /// The tap device.
    pub(super) device: &'static str,
    /// Its addresses, with prefix lengths.
    pub(super) addresses: &'static [&'static str],
    /// Its default gateways.
    pub(super) gateways: &'static [&'static str],
}

/// A check: what a host does, and what has to happen.
pub(super) struct Check {
    /// What it shows.
    pub(super) what: &'static str,
    /// The index of the client's host.
    pub(super) from: usize,
    /// What the client does.
    pub(super) action: Action,
}

/// What a client does, and what has to happen.
pub(super) enum Action {
    /// Pings an address. The answer and its sender, or `None` if none may come.
    Ping { to: &'static str, ttl: u8, expected: Option<(PingAnswer, &'static str)> },
    /// Exchanges bytes over TCP. The server is a host with the address that it listens on; `seen` is the address of the
    /// client as the server sees it, or `None` if no connection may come about.
    Tcp { to: &'static str, server: usize, listen: &'static str, seen: Option<&'static str> },
    /// Exchanges a datagram over UDP with a host that owns the address.
    Udp { to: &'static str, server: usize, seen: &'static str },
    /// Opens a TCP connection for each of these servers, all with one port. Each server has to get one.
    Balance { to: &'static str, servers: &'static [(usize, &'static str)], seen: &'static str },
}

const fn ping(what: &'static str, from: usize, to: &'static str) -> Check {
    Check { what, from, action: Action::Ping { to, ttl: 64, expected: Some((PingAnswer::Reply, to)) } }
}

const fn no_ping(what: &'static str, from: usize, to: &'static str) -> Check {
    Check { what, from, action: Action::Ping { to, ttl: 64, expected: None } }
}

const fn expired_ping(what: &'static str, from: usize, to: &'static str, router: &'static str) -> Check {
    let expected = Some((PingAnswer::TimeExceeded, router));
    Check { what, from, action: Action::Ping { to, ttl: 1, expected } }
}

const fn tcp(
    what: &'static str,
    from: usize,
    server: usize,
    listen: &'static str,
    seen: &'static str,
) -> Check {
    Check { what, from, action: Action::Tcp { to: listen, server, listen, seen: Some(seen) } }
}

const fn no_tcp(what: &'static str, from: usize, server: usize, listen: &'static str) -> Check {
    Check { what, from, action: Action::Tcp { to: listen, server, listen, seen: None } }
}

const fn udp(what: &'static str, from: usize, server: usize, to: &'static str, seen: &'static str) -> Check {
    Check { what, from, action: Action::Udp { to, server, seen } }
}

/// The hosts on both sides of a router.
const ROUTED_HOSTS: &[Host] = &[
    Host {
        device: "lan0",
        addresses: &["10.1.0.2/24", "2001:db8:1::2/64"],
        gateways: &["10.1.0.1", "2001:db8:1::1"],
    },
    Host {
        device: "wan0",
        addresses: &["10.2.0.2/24", "2001:db8:2::2/64"],
        gateways: &["10.2.0.1", "2001:db8:2::1"],
    },
];

/// All of them.
pub(super) const STACKS: [ExampleStack; 4] = [
    ExampleStack {
        name: "bridge-firewall",
        stack: include_str!("../../../../../examples/networks/bridge-firewall.toml"),
        configuration: include_str!("../../../../../examples/networks/bridge-firewall.click"),
        hosts: &[
            Host { device: "lan0", addresses: &["10.1.0.2/24", "2001:db8:1::2/64"], gateways: &[] },
            Host { device: "wan0", addresses: &["10.1.0.3/24", "2001:db8:1::3/64"], gateways: &[] },
        ],
        checks: &[
            ping("ping from inside", 0, "10.1.0.3"),
            ping("ping from inside, IPv6", 0, "2001:db8:1::3"),
            no_ping("no ping from outside", 1, "10.1.0.2"),
            tcp("TCP from inside", 0, 1, "10.1.0.3:7", "10.1.0.2"),
            udp("UDP from inside", 0, 1, "10.1.0.3:7", "10.1.0.2"),
            tcp("TCP from inside, IPv6", 0, 1, "[2001:db8:1::3]:7", "2001:db8:1::2"),
            tcp("TCP from outside to port 443, which a rule allows", 1, 0, "10.1.0.2:443", "10.1.0.3"),
            no_tcp("no TCP from outside to port 7", 1, 0, "10.1.0.2:7"),
            no_tcp("no TCP from outside to port 7, IPv6", 1, 0, "[2001:db8:1::2]:7"),
        ],
    },
    ExampleStack {
        name: "router",
        stack: include_str!("../../../../../examples/networks/router.toml"),
        configuration: include_str!("../../../../../examples/networks/router.click"),
        hosts: ROUTED_HOSTS,
        checks: &[
            ping("ping", 0, "10.2.0.2"),
            ping("ping in the other direction", 1, "10.1.0.2"),
            ping("ping, IPv6", 0, "2001:db8:2::2"),
            ping("ping in the other direction, IPv6", 1, "2001:db8:1::2"),
            ping("ping of the router", 0, "10.1.0.1"),
            expired_ping("error for an expired time to live", 0, "10.2.0.2", "10.1.0.1"),
            expired_ping("error for an expired time to live, other side", 1, "10.1.0.2", "10.2.0.1"),
            expired_ping("error for an expired hop limit, IPv6", 0, "2001:db8:2::2", "2001:db8:1::1"),
            tcp("TCP", 0, 1, "10.2.0.2:7", "10.1.0.2"),
            tcp("TCP in the other direction", 1, 0, "10.1.0.2:7", "10.2.0.2"),
            tcp("TCP, IPv6", 0, 1, "[2001:db8:2::2]:7", "2001:db8:1::2"),
            udp("UDP", 0, 1, "10.2.0.2:7", "10.1.0.2"),
        ],
    },
    ExampleStack {
        name: "nat",
        stack: include_str!("../../../../../examples/networks/nat.toml"),
        configuration: include_str!("../../../../../examples/networks/nat.click"),
        hosts: &[
            Host { device: "lan0", addresses: &["10.1.0.2/24"], gateways: &["10.1.0.1"] },
            Host { device: "wan0", addresses: &["10.2.0.2/24"], gateways: &[] },
        ],
        checks: &[
            ping("ping from the private network", 0, "10.2.0.2"),
            ping("ping of the gateway, private side", 0, "10.1.0.1"),
            ping("ping of the gateway, public side", 1, "10.2.0.1"),
            expired_ping("error for an expired time to live", 0, "10.2.0.2", "10.1.0.1"),
            tcp("TCP, seen with the public address", 0, 1, "10.2.0.2:7", "10.2.0.1"),
            udp("UDP, seen with the public address", 0, 1, "10.2.0.2:7", "10.2.0.1"),
            Check {
                what: "TCP from the public network to the forwarded port",
                from: 1,
                action: Action::Tcp {
                    to: "10.2.0.1:8080",
                    server: 0,
                    listen: "10.1.0.2:80",
                    seen: Some("10.2.0.2"),
                },
            },
            Check {
                what: "no TCP from the public network to another port",
                from: 1,
                action: Action::Tcp { to: "10.2.0.1:80", server: 0, listen: "10.1.0.2:80", seen: None },
            },
        ],
    },
    ExampleStack {
        name: "load-balancer",
        stack: include_str!("../../../../../examples/networks/load-balancer.toml"),
        configuration: include_str!("../../../../../examples/networks/load-balancer.click"),
        hosts: &[
            Host { device: "wan0", addresses: &["10.2.0.2/24"], gateways: &[] },
            Host { device: "lan0", addresses: &["10.1.0.2/24"], gateways: &["10.1.0.1"] },
            Host { device: "lan1", addresses: &["10.1.0.3/24"], gateways: &["10.1.0.1"] },
        ],
        checks: &[
            ping("ping of the virtual address", 0, "10.2.0.1"),
            ping("ping of the balancer by a server", 1, "10.1.0.1"),
            Check {
                what: "two TCP connections, one for each server",
                from: 0,
                action: Action::Balance {
                    to: "10.2.0.1:80",
                    servers: &[(1, "10.1.0.2:80"), (2, "10.1.0.3:80")],
                    seen: "10.2.0.2",
                },
            },
            no_tcp("no TCP from a server to a client", 1, 0, "10.2.0.2:7"),
        ],
    },
];
