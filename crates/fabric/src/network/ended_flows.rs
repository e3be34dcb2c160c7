//! Hands flows that ended by a timeout over to the thread that notes them. The thread that moves packets never waits.

use model::SwitchName;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use switch::EndedFlow;

/// Flows that wait to be noted. Beyond, they are only counted.
pub(crate) const MAX_ENDED_FLOWS: usize = 1024;

/// A flow that ended by a timeout.
#[derive(Debug)]
pub(crate) struct EndedNote {
    /// Its switch.
    pub(crate) switch: SwitchName,
    /// Its last state.
    pub(crate) flow: EndedFlow,
    /// Flows that ended before and did not fit.
    pub(crate) lost: u64,
}

/// The end of the thread that moves packets: it never waits.
#[derive(Debug)]
pub(crate) struct EndedFlows {
    sender: SyncSender<EndedNote>,
    lost: u64,
}

impl EndedFlows {
    /// Both ends.
    pub(crate) fn channel() -> (Self, Receiver<EndedNote>) {
        let (sender, receiver) = sync_channel(MAX_ENDED_FLOWS);
        (Self { sender, lost: 0 }, receiver)
    }

    /// Hands a flow over.
    pub(crate) fn note(&mut self, switch: &SwitchName, flow: EndedFlow) {
        let note = EndedNote { switch: switch.clone(), flow, lost: self.lost };
        match self.sender.try_send(note) {
            Ok(()) => self.lost = 0,
            Err(TrySendError::Full(_)) => self.lost += 1,
            // The fabric ends.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use switch::{FlowStatus, RemovalReason};

    #[test]
    fn flows_that_do_not_fit_are_counted() {
        let switch: SwitchName = "lan".parse().unwrap();
        let flow = |id| EndedFlow {
            status: FlowStatus { id, packets: 0, bytes: 0, age: Duration::ZERO, idle: Duration::ZERO },
            reason: RemovalReason::HardTimeout,
        };
        let (mut flows, receiver) = EndedFlows::channel();
        let all = MAX_ENDED_FLOWS as u64 + 5;
        (0..all).for_each(|id| flows.note(&switch, flow(id)));
        let first: Vec<EndedNote> = receiver.try_iter().collect();
        assert!(first.len() == MAX_ENDED_FLOWS && first.iter().all(|note| note.lost == 0));
        flows.note(&switch, flow(all));
        let note = receiver.try_recv().unwrap();
        assert_eq!((note.flow.status.id, note.lost), (all, 5));
        drop(receiver);
        flows.note(&switch, flow(0));
    }
}
