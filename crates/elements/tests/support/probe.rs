//! `Probe`: notes the contents of all packets on a connection.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use click_lang::{Connection, Graph, Port};
use element::prelude::*;
use router::Registry;

thread_local! {
    /// Hashes of the contents that passed, by connection.
    static PASSED: RefCell<Vec<HashSet<u64>>> = const { RefCell::new(Vec::new()) };
}

/// Notes the contents of packets.
#[derive(Args)]
#[element(name = "Probe", group = "testing", order_insensitive)]
struct ProbeArgs {
    /// The number of the connection.
    #[arg(position)]
    number: u32,
}

struct Probe {
    number: usize,
}

impl Filter for Probe {
    type Args = ProbeArgs;

    fn new(args: ProbeArgs, _: &mut Setup) -> Result<Probe, SetupError> {
        Ok(Probe { number: args.number as usize })
    }

    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        let mut hash = DefaultHasher::new();
        packet.data().hash(&mut hash);
        PASSED.with_borrow_mut(|passed| passed[self.number].insert(hash.finish()));
        Verdict::Pass(packet)
    }
}

/// The registry of all classes and `Probe`.
pub(crate) fn registry() -> Registry {
    let probe: &'static [Class] = Box::leak(Box::new([Class::of::<Probe>()]));
    let groups = [elements::REGISTRY, &[probe]].concat();
    Registry::new(Box::leak(groups.into_boxed_slice()))
}

/// Puts a probe on each connection; returns the connections.
pub(crate) fn insert(graph: &mut Graph) -> Vec<Connection> {
    let connections = std::mem::take(&mut graph.connections);
    PASSED.set(vec![HashSet::new(); connections.len()]);
    for (number, connection) in connections.iter().enumerate() {
        let port = Port { element: graph.elements.len(), port: 0 };
        graph.elements.push(click_lang::Element {
            name: format!("probe{number}"),
            class: "Probe".into(),
            config: number.to_string(),
            location: connection.location.clone(),
            config_location: None,
            is_verbatim: false,
        });
        let between = |from, to| Connection { from, to, location: connection.location.clone() };
        graph.connections.extend([between(connection.from, port), between(port, connection.to)]);
    }
    graph.connections.sort_by_key(|connection| (connection.to, connection.from));
    connections
}

/// The contents that went into an element, and those that came out of it.
pub(crate) fn passed(connections: &[Connection], element: usize) -> (HashSet<u64>, HashSet<u64>) {
    PASSED.with_borrow(|passed| {
        let of = |is_end: fn(&Connection, usize) -> bool| {
            let ends = connections.iter().zip(passed).filter(|(connection, _)| is_end(connection, element));
            ends.flat_map(|(_, hashes)| hashes.iter().copied()).collect()
        };
        (
            of(|connection, element| connection.to.element == element),
            of(|connection, element| connection.from.element == element),
        )
    })
}
