//! Hands instances of services that stand still over to the thread that reports and ends them. The thread that moves packets
//! never waits.

use super::attach::Network;
use super::records::Silent;
use model::BoxName;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use switch::PortId;

/// Instances that wait to be reported. Others are found again when they have taken packets and stand still again.
const MAX_SILENT: usize = 1024;

impl Network {
    /// Reports instances that stand still from now on.
    pub(crate) fn report_silent(&mut self) -> Receiver<Silent> {
        let (sender, receiver) = sync_channel(MAX_SILENT);
        self.silent = Some(sender);
        receiver
    }

    /// Looks for instances that stand still; their flows go on at others. Returns the time until the next look.
    pub(super) fn look_for_silence(&mut self) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        for (record, runner) in self.switches.iter().zip(self.runners.iter_mut().skip(1)) {
            let services = &record.services.definition.services;
            if services.iter().all(|service| service.dead_after_ms.is_none()) {
                continue;
            }
            let (now, mut due) = (runner.now(), None);
            let mut told: BTreeSet<BoxName> = BTreeSet::new();
            let mut found: Vec<PortId> = Vec::new();
            for shard in runner.shards_mut() {
                found.extend(shard.look_for_silence(now, &mut due).into_iter().map(|(port, _)| port));
            }
            for port in found {
                let port = record.ports.iter().find(|(_, there)| there.id == port);
                let Some((service, instance)) = port.and_then(|(port, _)| record.instance_at(port)) else {
                    continue;
                };
                let name = &instance.name;
                if told.insert(name.clone()) {
                    let waiting = record.waiting(runner).get(name).copied().unwrap_or(0);
                    let time = Duration::from_millis(service.dead_after_ms.unwrap_or_default().into());
                    let flows = record.flows_of(runner, name);
                    let (service, name) = (service.name.clone(), name.clone());
                    let found = Silent { service, name, waiting, flows, time };
                    tell(self.silent.as_ref(), found);
                }
            }
            let due = due.map(|due| Duration::from_nanos(due.saturating_sub(now)));
            next = [next, due].into_iter().flatten().min();
        }
        next
    }
}

fn tell(to: Option<&SyncSender<Silent>>, found: Silent) {
    if let Some(to) = to {
        // The flows have moved already; only the report is lost.
        let _ = to.try_send(found);
    }
}
