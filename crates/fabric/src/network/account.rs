//! The accounts of switches, ports and pipes, and what passed the rings of boxes.

use super::attach::Network;
use super::flows::all_steering;
use super::records::{Endpoint, PortRecord, SwitchRecord};
use boundary::limits::MAX_DROP_REASONS;
use model::{AccountPlace, AccountRow, BoxName, PortDriver, PortName, ServiceName, SwitchName};
use protocol::fabric::LinkEnd;
use std::collections::{BTreeMap, BTreeSet};
use switch::{ChainBooks, Counters, ForwardingMode, LinkBooks, PortBooks, REASONS, Reason, RingBooks};

/// What the thread that moves packets counted, between two rounds.
#[derive(Debug, Default)]
pub(crate) struct NetworkAccount {
    /// Ports, switches, links and pipes.
    pub(crate) rows: Vec<AccountRow>,
    /// The rings of running boxes.
    pub(crate) rings: BTreeMap<(BoxName, u8), RingBooks>,
    /// The boxes behind ports of switches.
    pub(crate) box_ports: BTreeMap<(SwitchName, PortName), BoxName>,
    /// The services, with the boxes that are their instances, or were and are still there.
    pub(crate) services: BTreeMap<ServiceName, Vec<BoxName>>,
    /// What became of the packets of removed instances, by service.
    pub(crate) removed: BTreeMap<ServiceName, AccountRow>,
    /// The rings of the boxes' earlier runs, of all ports together. What waits is what was lost.
    pub(crate) ended: BTreeMap<BoxName, RingBooks>,
}

/// Drop reasons that are counted between a switch and what is behind its port. The others are the switch's own.
const PORT_REASONS: [Reason; 13] = [
    Reason::TOO_LONG,
    Reason::FULL,
    Reason::FAULTY,
    Reason::DOWN,
    Reason::MISSED,
    Reason::BOX_ENDED,
    Reason::THREAD_FULL,
    Reason::BAD_CHECKSUM,
    Reason::BAD_TUNNEL_HEADER,
    Reason::CRITICAL_OPTION,
    Reason::TUNNEL_CONTROL,
    Reason::CONGESTION_MARK,
    Reason::TOO_BIG,
];

fn lost(counters: &Counters, counts: impl Fn(Reason) -> bool) -> BTreeMap<String, u64> {
    let reasons = REASONS.into_iter().filter(|reason| counts(*reason));
    let lost = reasons.map(|reason| (reason.name().to_string(), counters.dropped(reason)));
    sorting::collect(lost.filter(|(_, count)| *count > 0))
}

/// Adds a row of an instance, or that of removed instances, to the row of its service. What comes in and goes out is what the host
/// put into rings and took out; what a box read from files was made there, and what it wrote was delivered.
pub(crate) fn add_to_service(mut sum: AccountRow, row: &AccountRow) -> AccountRow {
    let and = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
    // A number that a box did not report makes the difference unknown.
    let unknown = row.incoming.is_none() || row.out.is_none() || row.waiting.is_none();
    let (incoming, out) = (row.incoming.unwrap_or(0), row.out.unwrap_or(0));
    match row.place {
        AccountPlace::ReceiveRing { .. } => {
            sum.incoming = and(sum.incoming, row.incoming);
            sum.made = sum.made.saturating_sub(out);
        }
        AccountPlace::TransmitRing { .. } => {
            sum.out = and(sum.out, row.out);
            sum.delivered = sum.delivered.saturating_sub(incoming);
        }
        AccountPlace::Ended { .. } | AccountPlace::Service { .. } => {
            sum.incoming = and(sum.incoming, row.incoming);
            sum.out = and(sum.out, row.out);
        }
        _ => {
            sum.made = sum.made.saturating_add(incoming);
            sum.delivered = sum.delivered.saturating_add(out);
        }
    }
    sum.waiting = if unknown { None } else { and(sum.waiting, row.waiting) };
    sum.made = sum.made.saturating_add(row.made);
    sum.discarded = sum.discarded.saturating_add(row.discarded);
    sum.delivered = sum.delivered.saturating_add(row.delivered);
    sum.consumed = sum.consumed.saturating_add(row.consumed);
    for (reason, count) in &row.lost {
        let all: &mut u64 = sum.lost.entry(reason.clone()).or_default();
        *all = all.saturating_add(*count);
    }
    (sum.own_word, sum.estimated) = (sum.own_word | row.own_word, sum.estimated | row.estimated);
    sum.moved = sum.moved.saturating_add(row.moved);
    sum
}

impl Network {
    /// The accounts of everything that packets pass on the host.
    pub(crate) fn account(&mut self) -> NetworkAccount {
        let mut account = NetworkAccount::default();
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        for name in &names {
            self.account_of_switch(name, &mut account.rows);
            self.account_of_chains(name, &mut account.rows);
        }
        for record in &self.switches {
            for service in &record.services.definition.services {
                let instances = service.instances.iter().map(|instance| instance.name.clone());
                account.services.insert(service.name.clone(), instances.collect());
            }
            let is_there = |name: &BoxName| !self.port_keys(name).is_empty();
            let leaving = record.services.leaving.iter();
            for (name, (service, _)) in leaving.filter(|(name, _)| is_there(name)) {
                account.services.entry(service.clone()).or_default().push(name.clone());
            }
            account.removed.extend(record.services.removed.clone());
        }
        for record in &self.switches {
            // Also those of functions in other processes.
            let of_box = record.ports.iter().filter_map(|(port, entry)| match &entry.definition.driver {
                PortDriver::Box { name, .. } => Some(((record.name.clone(), port.clone()), name.clone())),
                _ => None,
            });
            account.box_ports.extend(of_box);
        }
        account.rows.extend(self.links());
        account.rows.extend(self.pipe_rows());
        for ((name, number), record) in &self.box_ports {
            let rings = match &record.endpoint {
                Endpoint::Switch { slot, .. } => slot.rings(),
                Endpoint::Pipe { pipe, side, .. } => pipe.rings(*side),
            };
            if let Endpoint::Switch { switch, port, .. } = &record.endpoint {
                account.box_ports.insert((switch.clone(), port.clone()), name.clone());
            }
            if let Some(rings) = rings {
                account.rings.insert((name.clone(), *number), rings);
            }
            *account.ended.entry(name.clone()).or_default() += record.ended;
        }
        account
    }

    /// The boxes that are no longer instances, and still there, of the services that have these instances.
    pub(crate) fn leaving_with(&self, instances: &[BoxName]) -> Vec<BoxName> {
        let of = |record: &SwitchRecord| {
            let services: BTreeSet<&ServiceName> =
                sorting::collect(instances.iter().filter_map(|name| record.services.service_of(name)));
            let leaving = record.services.leaving.iter();
            let found = leaving.filter(|(name, (of, _))| services.contains(of) && !instances.contains(name));
            found.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        self.switches.iter().flat_map(of).collect()
    }

    /// Detaches a box for good. If it was an instance of a service, the service keeps what became of its packets. `ended` makes the
    /// row of its earlier runs from what passed its rings.
    pub(crate) fn detach_removed(&mut self, name: &BoxName, ended: impl FnOnce(&RingBooks) -> AccountRow) {
        let mut rings = RingBooks::default();
        let of_box = self.box_ports.range((name.clone(), 0)..=(name.clone(), u8::MAX));
        of_box.for_each(|(_, record)| rings += record.ended);
        self.detach(name);
        for record in &mut self.switches {
            let services = &mut record.services;
            let Some(service) = services.service_of(name).cloned() else { continue };
            services.leaving.remove(name);
            let mut row = ended(&rings);
            let place = AccountPlace::Service { service: service.clone() };
            let sum = services.removed.entry(service).or_insert_with(|| AccountRow::new(place));
            // Boxes name reasons as they like.
            if sum.lost.len() >= MAX_DROP_REASONS {
                row.lost.retain(|reason, _| sum.lost.contains_key(reason));
            }
            *sum = add_to_service(sum.clone(), &row);
            return;
        }
    }

    fn account_of_switch(&mut self, name: &SwitchName, rows: &mut Vec<AccountRow>) {
        let Ok((record, runner)) = self.record_and_runner(name) else { return };
        for (port, entry) in &record.ports {
            // This also takes the frames that the driver has missed.
            let counters = runner.counters(entry.id).unwrap_or_default();
            let books = runner.port_books(entry.id).unwrap_or_default();
            let place = AccountPlace::Port { switch: name.clone(), port: port.clone() };
            rows.push(AccountRow {
                incoming: Some(books.came.saturating_add(books.planned)),
                out: Some(counters.received_frames.saturating_add(counters.sent_frames)),
                lost: lost(&counters, |reason| PORT_REASONS.contains(&reason)),
                ..AccountRow::new(place)
            });
        }
        let books = runner.books();
        let held = |forward: &mut ForwardingMode| match forward {
            ForwardingMode::Steering(steering) => steering.chains().held() as u64,
            _ => 0,
        };
        let held = runner.forwards().map(held).sum();
        rows.push(AccountRow {
            incoming: Some(books.counters.received_frames.saturating_add(books.injected)),
            made: books.copied,
            out: Some(books.planned.saturating_add(books.taken).saturating_sub(held)),
            waiting: Some(held),
            lost: lost(&books.counters, |reason| {
                !PORT_REASONS.contains(&reason) && reason != Reason::FUNCTION_DROP
            }),
            // What functions drop ends as they want it.
            discarded: books.counters.dropped(Reason::FUNCTION_DROP),
            ..AccountRow::new(AccountPlace::Switch { switch: name.clone() })
        });
    }

    /// The chains of a steering switch.
    fn account_of_chains(&mut self, name: &SwitchName, rows: &mut Vec<AccountRow>) {
        let Ok((record, runner)) = self.record_and_runner(name) else { return };
        let Ok(all) = all_steering(name, runner) else { return };
        for chain in &record.services.definition.chains {
            let Some(number) = record.services.chains.get(&chain.name) else { continue };
            let of_shards = all.iter().filter_map(|steering| steering.chains().books(number));
            let books = of_shards.reduce(|mut sum, books| {
                sum += books;
                sum
            });
            let Some(books) = books else { continue };
            let ChainBooks {
                entered,
                returned,
                sent,
                full,
                left,
                elsewhere,
                no_instance,
                congested,
                dropped,
                waiting,
                overflowed,
            } = books;
            // Together they are what its hops lost.
            let lost = [
                (Reason::NO_INSTANCE, no_instance),
                (Reason::FULL, full),
                (Reason::CONGESTED, congested),
                (Reason::HANDOVER_FULL, overflowed),
            ];
            let lost = lost.into_iter().filter(|(_, count)| *count > 0);
            rows.push(AccountRow {
                incoming: Some(entered.saturating_add(returned)),
                out: Some(sent.saturating_sub(full).saturating_add(left).saturating_add(elsewhere)),
                lost: lost.map(|(reason, count)| (reason.name().to_string(), count)).collect(),
                discarded: dropped,
                waiting: Some(waiting),
                ..AccountRow::new(AccountPlace::Chain { switch: name.clone(), chain: chain.name.clone() })
            });
        }
    }

    /// The pipes between ports of switches, each once.
    fn links(&self) -> Vec<AccountRow> {
        let mut rows = Vec::new();
        for (record, runner) in self.switches.iter().zip(self.runners.iter().skip(1)) {
            for (port, entry) in &record.ports {
                let PortDriver::Pipe { switch: far_switch, port: far_port } = &entry.definition.driver else {
                    continue;
                };
                let far = self.port(far_switch, far_port);
                let Some((far_entry, far_runner)) =
                    far.filter(|_| (&record.name, port) < (far_switch, far_port))
                else {
                    continue;
                };
                let ends = [(runner, entry.id), (far_runner, far_entry.id)];
                let books = ends.map(|(runner, id)| runner.port_books(id).unwrap_or_default());
                let sum = |count: fn(&PortBooks) -> u64| books.iter().map(count).sum();
                rows.push(AccountRow {
                    incoming: Some(sum(|books| books.went)),
                    out: Some(sum(|books| books.came)),
                    waiting: Some(ends.iter().map(|(runner, id)| runner.waiting(*id)).sum()),
                    ..AccountRow::new(AccountPlace::Link {
                        switch: record.name.clone(),
                        port: port.clone(),
                        far_switch: far_switch.clone(),
                        far_port: far_port.clone(),
                    })
                });
            }
        }
        rows
    }

    /// What passed the ends of links to other fabrics.
    pub(crate) fn link_ends(&mut self) -> Vec<LinkEnd> {
        let mut ends = Vec::new();
        for (record, runner) in self.switches.iter().zip(self.runners.iter_mut().skip(1)) {
            for (port, entry) in &record.ports {
                let PortDriver::Pipe { switch: far_switch, port: far_port } = &entry.definition.driver else {
                    continue;
                };
                let Some(LinkBooks { link, sent, received, waiting }) = runner.link_books(entry.id) else {
                    continue;
                };
                ends.push(LinkEnd {
                    switch: record.name.clone(),
                    port: port.clone(),
                    far_switch: far_switch.clone(),
                    far_port: far_port.clone(),
                    link,
                    sent,
                    received,
                    waiting,
                });
            }
        }
        ends
    }

    fn port(
        &self,
        switch: &SwitchName,
        port: &PortName,
    ) -> Option<(&PortRecord, &switch::Shards<ForwardingMode>)> {
        let index = self.switches.iter().position(|record| record.name == *switch)?;
        Some((self.switches.get(index)?.ports.get(port)?, self.runners.get(index + 1)?))
    }

    /// The pipes between boxes, and the ports of boxes that are attached to nothing.
    fn pipe_rows(&self) -> Vec<AccountRow> {
        let mut pipes: BTreeMap<usize, AccountRow> = BTreeMap::new();
        for (key, record) in &self.box_ports {
            let Endpoint::Pipe { pipe, link, name, .. } = &record.endpoint else { continue };
            let row = pipes.entry(*link).or_insert_with(|| {
                let mut sum = pipe.side_counters(0);
                sum += pipe.side_counters(1);
                AccountRow {
                    incoming: Some(sum.received_frames),
                    out: Some(sum.sent_frames),
                    lost: lost(&sum, |_| true),
                    waiting: Some(pipe.waiting()),
                    ..AccountRow::new(AccountPlace::Pipe { pipe: name.clone(), ends: Vec::new() })
                }
            });
            if let AccountPlace::Pipe { ends, .. } = &mut row.place {
                ends.push(key.clone());
            }
        }
        pipes.into_values().collect()
    }
}
