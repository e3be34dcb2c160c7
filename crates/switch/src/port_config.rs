//! What a controller forbids the ports of a switch (`ofp_port_config`: OpenFlow 1.3.5, 7.2.1; 1.0, 5.2.1).

use crate::forward::Target;
use crate::port::PortId;

/// What a port does not do, because a controller configured it so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortConfig {
    /// Frames from the port are dropped, except those of spanning trees (`OFPPC_NO_RECV` of OpenFlow 1.0).
    pub no_receive: bool,
    /// Frames of spanning trees from the port are dropped (`OFPPC_NO_RECV_STP` of OpenFlow 1.0; in 1.3, `OFPPC_NO_RECV` is both).
    pub no_receive_stp: bool,
    /// Frames to the port are dropped (`OFPPC_NO_FWD`).
    pub no_send: bool,
    /// Frames that are flooded do not reach the port (`OFPPC_NO_FLOOD` of OpenFlow 1.0).
    pub no_flood: bool,
    /// Frames from the port that no entry matches are not sent to controllers (`OFPPC_NO_PACKET_IN`).
    pub no_packet_in: bool,
}

/// The ports that may not send, or be flooded: none, mostly.
#[derive(Debug, Default)]
pub(crate) struct ClosedPorts {
    sending: Vec<PortId>,
    flooding: Vec<PortId>,
}

impl ClosedPorts {
    pub(crate) fn set(&mut self, port: PortId, config: PortConfig) {
        for (list, is_closed) in
            [(&mut self.sending, config.no_send), (&mut self.flooding, config.no_flood || config.no_send)]
        {
            list.retain(|other| *other != port);
            if is_closed {
                list.push(port);
            }
        }
    }

    /// Whether frames to a port are dropped.
    #[inline(always)]
    pub(crate) fn sends_nothing(&self, port: PortId) -> bool {
        !self.sending.is_empty() && self.sending.contains(&port)
    }

    /// Whether frames for several ports do not reach this one.
    pub(crate) fn misses(&self, target: Target, port: PortId) -> bool {
        match target {
            Target::Flood => self.flooding.contains(&port),
            _ => self.sends_nothing(port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::counters::REASONS;
    use crate::forward::{Flow, FlowOutput, PortKey, Steering, SteeringSettings};
    use crate::plan::ForwardingPlan;
    use crate::port::PortSettings;
    use crate::switch::Switch;
    use flow_table::Match;
    use reason::Reason;

    /// A switch with ports 0 to 2, whose frames go to an output.
    fn switch(output: FlowOutput) -> Switch<Steering> {
        let mut switch = Switch::new(Steering::new(SteeringSettings::default()));
        for number in 0..3 {
            assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(number)));
            assert!(switch.forward_mut().set_port_key(PortId(number), PortKey(number + 1)));
        }
        let (matches, idle_timeout, hard_timeout) = (vec![Match::any()], None, None);
        let flow = Flow { id: 1, priority: 1, from: None, matches, output, idle_timeout, hard_timeout };
        switch.forward_mut().add_flow(flow, 0).expect("a flow");
        switch
    }

    /// The ports that a frame from port 0 reaches, and the frames that port 0 lost for this reason.
    fn send(switch: &mut Switch<Steering>) -> (Vec<PortId>, u64) {
        send_to([2, 0, 0, 0, 0, 9], switch)
    }

    fn send_to(destination: [u8; 6], switch: &mut Switch<Steering>) -> (Vec<PortId>, u64) {
        let (mut batch, mut plan) = (Batch::new(1), ForwardingPlan::default());
        assert!(batch.push(&[&destination[..], &[2, 0, 0, 0, 0, 1, 8, 0], &[0x45; 46][..]].concat()));
        switch.switch(&batch, PortId(0), 0, &mut plan);
        let counters = switch.counters(PortId(0)).expect("a port");
        let lost: u64 = REASONS.into_iter().map(|reason| counters.dropped(reason)).sum();
        let mut ports = plan.ports().to_vec();
        ports.sort_unstable();
        let books = switch.books();
        assert_eq!(counters.received_frames + books.copied, books.planned + lost);
        assert_eq!(lost, counters.dropped(Reason::PORT_CONFIG) + counters.dropped(Reason::NO_ROUTE));
        (ports, counters.dropped(Reason::PORT_CONFIG))
    }

    #[test]
    fn closed_ports_neither_receive_nor_send() {
        let no_send = PortConfig { no_send: true, ..PortConfig::default() };
        let no_receive = PortConfig { no_receive: true, ..PortConfig::default() };
        let mut one = switch(FlowOutput::Port(PortKey(2)));
        assert_eq!(send(&mut one), (vec![PortId(1)], 0));
        one.set_port_config(PortId(1), no_send);
        assert_eq!(send(&mut one), (vec![], 1));
        one.set_port_config(PortId(1), no_receive);
        assert_eq!(send(&mut one), (vec![PortId(1)], 1));
        one.set_port_config(PortId(0), no_receive);
        assert_eq!(send(&mut one), (vec![], 2));
        one.set_port_config(PortId(0), PortConfig::default());
        assert_eq!(send(&mut one), (vec![PortId(1)], 2));

        let no_flood = PortConfig { no_flood: true, ..PortConfig::default() };
        one.set_port_config(PortId(1), no_flood);
        assert_eq!(send(&mut one), (vec![PortId(1)], 2));

        let mut all = switch(FlowOutput::Flood);
        all.set_port_config(PortId(1), no_flood);
        assert_eq!(send(&mut all), (vec![PortId(2)], 0));
        all.set_port_config(PortId(1), PortConfig::default());
        assert_eq!(send(&mut all), (vec![PortId(1), PortId(2)], 0));
        all.set_port_config(PortId(1), no_send);
        assert_eq!(send(&mut all), (vec![PortId(2)], 0));
        all.set_port_config(PortId(2), no_send);
        assert_eq!(send(&mut all), (vec![], 0));
        // Another port in the place of one that is gone has no configuration.
        all.remove_port(PortId(1)).expect("a port");
        assert_eq!(all.add_port(PortSettings::default()), Ok(PortId(1)));
        assert_eq!(send(&mut all), (vec![PortId(1)], 0));
    }
    /// Frames of spanning trees have a bit of their own (OpenFlow 1.0, 5.2.1).
    #[test]
    fn spanning_trees_go_on_at_ports_that_receive_nothing_else() {
        let spanning_tree = [0x01, 0x80, 0xc2, 0, 0, 0];
        // Another address of bridges.
        let other = [0x01, 0x80, 0xc2, 0, 0, 1];
        let mut switch = switch(FlowOutput::Port(PortKey(2)));
        let mut lost = 0;
        for (no_receive, no_receive_stp) in [(true, false), (false, true), (true, true), (false, false)] {
            let config = PortConfig { no_receive, no_receive_stp, ..PortConfig::default() };
            switch.set_port_config(PortId(0), config);
            for (destination, is_refused) in [(spanning_tree, no_receive_stp), (other, no_receive)] {
                lost += u64::from(is_refused);
                let expected = if is_refused { vec![] } else { vec![PortId(1)] };
                assert_eq!(send_to(destination, &mut switch), (expected, lost), "{config:?}");
            }
        }
    }
}
