//! Instances of services that stand still: reports them, and ends them, so that their restart policy decides what follows.

use super::state::Fabric;
use crate::boxes::Phase;
use crate::network::Silent;
use model::EventKind;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

impl Fabric {
    /// Starts the thread that does so. It ends with the thread that moves packets.
    pub(super) fn start_silence(&self) -> io::Result<()> {
        let Ok(receiver) = self.network(crate::network::Network::report_silent) else { return Ok(()) };
        let state = Arc::downgrade(&self.0);
        let run = move || silent_instances(&receiver, || state.upgrade().map(Fabric));
        std::thread::Builder::new().name("silence".into()).spawn(run).map(drop)
    }

    fn end_silent(&self, Silent { service, name, waiting, flows, time }: Silent) {
        let Ok(managed) = self.0.managed_box(&name) else { return };
        let is_running = managed.inner().phase == Phase::Running;
        let then = match is_running {
            true => "it is ended",
            // Somebody suspended it, or it ends already.
            false => "it does not run",
        };
        let message = format!(
            "instance {name} of service {service} took none of the packets that wait for it for {} ms: packets that wait: \
             {waiting}; flows that go on at other instances without its state: {flows}; {then}",
            time.as_millis()
        );
        managed.note(&message);
        self.0.note(EventKind::InstanceSilent, &name, message);
        if is_running {
            // It may have ended meanwhile.
            let _ = self.kill_box(&name);
        }
    }
}

fn silent_instances(receiver: &Receiver<Silent>, fabric: impl Fn() -> Option<Fabric>) {
    while let Ok(found) = receiver.recv() {
        let Some(fabric) = fabric() else { return };
        fabric.end_silent(found);
    }
}
