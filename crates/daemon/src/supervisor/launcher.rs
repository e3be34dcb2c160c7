//! Watches the launcher: reports that it has ended, gets another one, and has that keep the devices of ports.

use super::state::Supervisor;
use crate::fabric::{Devices, FabricLink, LauncherConnection};
use api::{AddPort, CreateSwitch, EventKind, Subject, SwitchName, with_causes};
use protocol::fabric::orders;
use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// Pauses between attempts to reach a launcher that has ended: the first, and the longest.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// What is known of the launcher.
#[derive(Debug, Default)]
struct Watch {
    /// The process of the last launcher.
    process: Option<i32>,
    /// Its end was reported.
    is_lost: bool,
}

/// What to do next.
enum Next {
    /// Wait for the end of the connection.
    Wait(LauncherConnection),
    /// Try again later.
    Retry,
    /// Nothing: there is no launcher, or the daemon is ending.
    End,
}

impl Supervisor {
    /// Starts the thread that watches the launcher. It ends with the last supervisor.
    pub(super) fn watch_launcher(&self) -> io::Result<()> {
        let state = Arc::downgrade(&self.0);
        let run = move || {
            let (mut watch, mut pause) = (Watch::default(), MIN_PAUSE);
            while let Some(state) = Weak::upgrade(&state) {
                // The supervisor must be able to end meanwhile.
                let next = Self::of(state).look_after_launcher(&mut watch);
                match next {
                    Next::Wait(connection) => {
                        connection.wait();
                        pause = MIN_PAUSE;
                    }
                    Next::Retry => pause = (pause * 2).min(MAX_PAUSE),
                    Next::End => return,
                }
                thread::sleep(pause);
            }
        };
        thread::Builder::new().name("launcher".into()).spawn(run).map(drop)
    }

    fn look_after_launcher(&self, watch: &mut Watch) -> Next {
        if self.0.is_ending() {
            return Next::End;
        }
        let connection = match self.0.fabrics.connector().launcher(self.0.fabrics.store()) {
            Ok(Some(connection)) => connection,
            Ok(None) => return Next::End,
            Err(failure) => {
                if !std::mem::replace(&mut watch.is_lost, true) {
                    let message =
                        format!("the launcher has ended; no other one runs: {}", with_causes(&failure));
                    self.0.journal.note(EventKind::LauncherLost, Subject::Daemon, message);
                }
                return Next::Retry;
            }
        };
        // A connection also ends because of a request that took too long.
        if watch.process != connection.process() || watch.is_lost {
            self.keep_devices();
            self.start_agents();
            if watch.process.is_some() {
                self.report_launcher(watch.is_lost);
            }
            *watch = Watch { process: connection.process(), is_lost: false };
        }
        Next::Wait(connection)
    }

    /// Has the launcher keep the devices of all ports, which an earlier one opened.
    fn keep_devices(&self) {
        // A port that is removed meanwhile would leave its device.
        let _change = self.0.change();
        let ports: Vec<(SwitchName, AddPort)> = {
            let switches = self.0.switches();
            let all = switches.iter().flat_map(|(name, stored)| {
                stored.definition.ports.iter().map(move |port| (name.clone(), port.clone()))
            });
            all.collect()
        };
        for (switch, port) in ports {
            Devices::keep(self.0.fabrics.connector(), &port, || {
                let order = orders::DuplicateDevice { switch, port: port.name.clone() };
                // A fabric that has ended has no device.
                let (_, descriptors) = self.0.fabrics.ask_with_now(order, &[]).ok()?;
                descriptors.into_iter().next()
            });
        }
    }

    /// Has the launcher start the agents of all fabrics that need one: those of an earlier launcher are not its own.
    fn start_agents(&self) {
        let controlled: Vec<CreateSwitch> = {
            let switches = self.0.switches();
            let all = switches.values().map(|stored| &stored.definition);
            all.filter(|definition| !definition.controllers.is_empty()).cloned().collect()
        };
        for definition in controlled {
            // A fabric that has ended has no agent.
            let _ = self.0.fabrics.start_agent_of(&definition);
        }
    }

    fn report_launcher(&self, is_lost_reported: bool) {
        let journal = &self.0.journal;
        if !is_lost_reported {
            journal.note(EventKind::LauncherLost, Subject::Daemon, "the launcher has ended; boxes go on");
        }
        // If it has ended too, the next one is reported.
        let Ok(adopted) = self.0.fabrics.connector().numbers() else { return };
        let links = self.0.fabrics.all();
        let is_other = |link: &FabricLink| link.is_connected() && !adopted.contains(&link.number());
        let others: Vec<String> =
            links.iter().filter(|link| is_other(link)).map(|link| self.fabric_name(link)).collect();
        let message = match others.as_slice() {
            [] => "another launcher runs, and has adopted the fabrics of the one before".to_string(),
            names => format!(
                "another launcher runs, but has not adopted {}: replace with `clickbox fabric restart --force`",
                names.join(", ")
            ),
        };
        journal.note(EventKind::LauncherRestarted, Subject::Daemon, message);
    }
}
