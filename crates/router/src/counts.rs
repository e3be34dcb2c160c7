//! The packet counts of ports.

use crate::node::Node;
use crate::state::RouterState;

impl RouterState {
    /// The packets that left each output of an element.
    pub(crate) fn packets_out<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = u64> + 'a {
        let outputs = node.outputs.iter().enumerate();
        outputs.map(
            |(port, output)| if output.links.push { self.pushed(node, port) } else { output.pulled.get() },
        )
    }

    /// The packets that arrived at each input of an element. Those pushed to it are counted at the outputs that they left.
    pub(crate) fn packets_in<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = u64> + 'a {
        node.inputs.iter().map(|input| {
            let from = |&(peer, output): &(usize, usize)| self.pushed(self.nodes.get(peer)?, output).into();
            if input.links.push {
                input.links.peers.iter().filter_map(from).sum()
            } else {
                input.pulled.get()
            }
        })
    }

    /// The packets that an element pushed out of output `port`.
    pub(crate) fn pushed(&self, node: &Node, port: usize) -> u64 {
        let connection =
            node.element.connection(port).and_then(|number| self.connections.get(number as usize));
        let gathered = node.element.gathering(port).map_or(0, |gathering| gathering.packets.get());
        connection.map_or(0, |connection| connection.packets.get()) + gathered
    }
}
