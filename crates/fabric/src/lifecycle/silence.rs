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
        let (is_running, instance) = {
            let inner = managed.inner();
            // One that started later has not stood still for so long: it is another one, perhaps of another box.
            let is_later = inner.started.is_some_and(|(_, at)| at.elapsed() < time);
            (inner.phase == Phase::Running && !is_later, inner.instance.clone())
        };
        let then = match is_running {
            true => "it is ended",
            // Somebody suspended it, or it ends already, or it has been replaced.
            false => "it does not run",
        };
        let message = format!(
            "instance {name} of service {service} took none of the packets that wait for it for {} ms: packets that wait: \
             {waiting}; flows that go on at other instances without its state: {flows}; {then}",
            time.as_millis()
        );
        managed.note(&message);
        self.0.note(EventKind::InstanceSilent, &name, message);
        if let Some(instance) = instance.filter(|_| is_running) {
            instance.kill();
            self.ended(vec![(managed, instance)]);
        }
    }
}

fn silent_instances(receiver: &Receiver<Silent>, fabric: impl Fn() -> Option<Fabric>) {
    while let Ok(found) = receiver.recv() {
        let Some(fabric) = fabric() else { return };
        fabric.end_silent(found);
    }
}
