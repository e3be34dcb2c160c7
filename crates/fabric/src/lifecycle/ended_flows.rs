//! Events about flows that ended by a timeout: the thread that moves packets hands them over, and another one notes them.

use super::state::{Fabric, FabricState};
use crate::network::{EndedFlows, EndedNote, MAX_ENDED_FLOWS};
use model::{EventKind, SwitchName};
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::Duration;
use switch::{EndedFlow, RemovalReason};

/// Flows that are noted one by one before a pause. A thousand flows that end at once would displace all other events.
const MAX_EVENTS_AT_ONCE: usize = 32;

/// The pause after so many, in which the number of further ones is collected.
const PAUSE: Duration = Duration::from_secs(1);

impl Fabric {
    /// Starts the thread that notes them. It ends with the thread that moves packets.
    pub(super) fn start_ended_flows(&self) -> io::Result<()> {
        let (flows, receiver) = EndedFlows::channel();
        let state = Arc::downgrade(&self.0);
        let run = move || run(&receiver, &state, || std::thread::sleep(PAUSE));
        std::thread::Builder::new().name("ended-flows".into()).spawn(run)?;
        // A thread that moves no packets has no flows.
        let _ = self.network(|network| network.report_ended_flows(flows));
        Ok(())
    }
}

fn run(receiver: &Receiver<EndedNote>, state: &Weak<FabricState>, pause: impl Fn()) {
    while let Ok(first) = receiver.recv() {
        let Some(state) = state.upgrade() else { return };
        let mut noted = 0;
        // Those of one switch that are only counted.
        let mut others: Option<(SwitchName, u64)> = None;
        for note in std::iter::once(first).chain(receiver.try_iter()).take(2 * MAX_ENDED_FLOWS) {
            if noted < MAX_EVENTS_AT_ONCE {
                noted += 1;
                state.note(EventKind::FlowEnded, &note.switch, sentence(&note.switch, &note.flow));
                if note.lost > 0 {
                    count(&state, &mut others, note.switch, note.lost);
                }
            } else {
                count(&state, &mut others, note.switch, note.lost + 1);
            }
        }
        if let Some((switch, number)) = others {
            note_number(&state, &switch, number);
        }
        drop(state);
        if noted == MAX_EVENTS_AT_ONCE {
            pause();
        }
    }
}

/// Counts flows, and notes the number of those of another switch.
fn count(state: &FabricState, others: &mut Option<(SwitchName, u64)>, switch: SwitchName, number: u64) {
    match others {
        Some((known, counted)) if *known == switch => *counted += number,
        _ => {
            if let Some((known, counted)) = others.replace((switch, number)) {
                note_number(state, &known, counted);
            }
        }
    }
}

fn note_number(state: &FabricState, switch: &SwitchName, number: u64) {
    let flows = if number == 1 { "flow" } else { "flows" };
    let message = format!("{number} more {flows} of switch {switch} ended by their timeouts");
    state.note(EventKind::FlowEnded, switch, message);
}

fn sentence(switch: &SwitchName, flow: &EndedFlow) -> String {
    let status = &flow.status;
    let why = match flow.reason {
        RemovalReason::IdleTimeout => format!("no packet came for {} s", status.idle.as_secs()),
        _ => format!("its time of {} s has passed", status.age.as_secs()),
    };
    let (id, packets, bytes) = (status.id, status.packets, status.bytes);
    format!("flow {id} of switch {switch} ended: {why}; it had {packets} packets, {bytes} bytes")
}
