//! Requests to the cores of a box: engines that run one configuration together, each with a part of the flows.

use boundary::{
    PacketAccount, PacketFates, PortStats, PublishedAccount, Request, Stats, WaitingPackets, encode_answers,
};
use sandbox::{CallError, Sandbox};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Sends a request to a box. Of several cores, those execute it that must; their replies become one.
pub(super) fn call(cores: &mut [Sandbox], request: &Request, time: Duration) -> Result<Vec<u8>, CallError> {
    let until = Instant::now() + time;
    if let [only] = cores {
        return only.call(request, time);
    }
    match *request {
        Request::Install { name, configuration } => install(cores, name, configuration, until),
        Request::Read { name, handler, argument } => read(cores, (name, handler), argument, until),
        Request::Stats => {
            let replies = each(cores, until, |_| Request::Stats)?;
            let stats = replies.iter().map(|reply| Stats::decode(reply)).collect::<Result<Vec<_>, _>>();
            let sum = stats.map_err(CallError::Reply)?.into_iter().reduce(add_stats);
            Ok(sum.unwrap_or_default().encode())
        }
        // They change nothing, and all cores know the same.
        Request::Rewrite { .. } | Request::Check { .. } | Request::Ranges => {
            let ranges = each(cores, until, |_| request.clone())?;
            Ok(ranges.into_iter().next().unwrap_or_default())
        }
        // What the first core refuses, the others are not asked.
        _ => {
            let mut kept = Vec::new();
            for (number, core) in cores.iter_mut().enumerate() {
                let result = core.call(request, left(until));
                let reply =
                    if number == 0 { result } else { result.map_err(|error| partial(number, error)) }?;
                // Of refused writes, one report is enough.
                if kept.is_empty() {
                    kept = reply;
                }
            }
            Ok(kept)
        }
    }
}

/// The error of a request that cores before this one have executed. No core can take back a write.
fn partial(number: usize, error: CallError) -> CallError {
    let words = format!("core {number} refused, after all cores before it have done it");
    match error {
        CallError::Refused(reason) => CallError::Refused(reason.introduced(&words)),
        CallError::Missing(reason) => CallError::Refused(reason.introduced(&words)),
        error => error,
    }
}

/// Tells each of several cores which one it is.
pub(super) fn number(cores: &mut [Sandbox], time: Duration) -> Result<(), CallError> {
    let count = u32::try_from(cores.len()).unwrap_or(u32::MAX);
    if count == 1 {
        return Ok(());
    }
    each(cores, Instant::now() + time, |index| Request::Shard { index, count }).map(drop)
}

/// Installs a configuration in all cores, or in none: each prepares it, and then all let it take over.
fn install(
    cores: &mut [Sandbox],
    name: &str,
    configuration: &str,
    until: Instant,
) -> Result<Vec<u8>, CallError> {
    match each(cores, until, |_| Request::Stage { name, configuration }) {
        Ok(warnings) => {
            each(cores, until, |_| Request::Commit)?;
            Ok(warnings.into_iter().next().unwrap_or_default())
        }
        Err(error) => {
            // A core that does not reply either drops it with the next one that it prepares.
            let _ = each(cores, until, |_| Request::Abort);
            Err(error)
        }
    }
}

/// Reads a handler of all cores, or with a path that begins with `shard1/` of one.
fn read(
    cores: &mut [Sandbox],
    (name, handler): (&str, &str),
    argument: &[u8],
    until: Instant,
) -> Result<Vec<u8>, CallError> {
    match each(cores, until, |_| Request::Read { name, handler, argument }) {
        Ok(answers) => {
            let answers = encode_answers(&answers);
            let first = cores.first_mut().ok_or(CallError::Ended)?;
            first.call(&Request::Merge { name, handler, answers: &answers }, left(until))
        }
        // An element of that name comes first.
        Err(CallError::Missing(missing)) => {
            let split = handler.strip_prefix("shard").and_then(|rest| rest.split_once('/'));
            let one =
                split.and_then(|(number, rest)| Some((cores.get_mut(number.parse::<usize>().ok()?)?, rest)));
            let (core, handler) = one.ok_or(CallError::Missing(missing))?;
            core.call(&Request::Read { name, handler, argument }, left(until))
        }
        Err(error) => Err(error),
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// Sends each core its request, one after the other. Returns the replies in order. The first error ends it.
fn each<'a>(
    cores: &mut [Sandbox],
    until: Instant,
    request: impl Fn(u32) -> Request<'a>,
) -> Result<Vec<Vec<u8>>, CallError> {
    (0u32..).zip(cores).map(|(number, core)| core.call(&request(number), left(until))).collect()
}

/// Adds the packets of a core that has ended.
pub(super) fn add_account(sum: PublishedAccount, core: PublishedAccount) -> PublishedAccount {
    let mut lost: BTreeMap<u16, u64> = sorting::collect(sum.lost);
    for (reason, packets) in core.lost {
        let all = lost.entry(reason).or_default();
        *all = all.saturating_add(packets);
    }
    PublishedAccount {
        fates: add_fates(sum.fates, core.fates),
        received: sum.received.saturating_add(core.received),
        sent: sum.sent.saturating_add(core.sent),
        lost: lost.into_iter().collect(),
        unlisted: sum.unlisted.saturating_add(core.unlisted),
    }
}

/// Adds the counters of a core.
fn add_stats(mut sum: Stats, core: Stats) -> Stats {
    let add = u64::saturating_add;
    for (sum, core) in sum.ports.iter_mut().zip(&core.ports) {
        *sum = PortStats {
            received_packets: add(sum.received_packets, core.received_packets),
            received_bytes: add(sum.received_bytes, core.received_bytes),
            sent_packets: add(sum.sent_packets, core.sent_packets),
            sent_bytes: add(sum.sent_bytes, core.sent_bytes),
            full_drops: add(sum.full_drops, core.full_drops),
        };
    }
    Stats {
        busy_cycles: add(sum.busy_cycles, core.busy_cycles),
        heap_used: add(sum.heap_used, core.heap_used),
        heap_peak: add(sum.heap_peak, core.heap_peak),
        lost_events: add(sum.lost_events, core.lost_events),
        ports: sum.ports,
        drops: merged(sum.drops, core.drops, |(reason, packets)| (reason.clone(), packets)),
        account: add_packets(sum.account, core.account),
    }
}

/// Adds the packets of a core. Places that several cores have become one; those with the most packets come first.
fn add_packets(sum: PacketAccount, core: PacketAccount) -> PacketAccount {
    let mut losses = merged(sum.losses, core.losses, |place| {
        ((place.configuration.clone(), place.element.clone(), place.reason.clone()), &mut place.packets)
    });
    let mut discards = merged(sum.discards, core.discards, |place| {
        ((place.configuration.clone(), place.connection.clone()), &mut place.packets)
    });
    let oldest = |waits: &[WaitingPackets], place: &WaitingPackets| {
        let same = |other: &&WaitingPackets| {
            (&other.configuration, &other.element) == (&place.configuration, &place.element)
        };
        waits.iter().find(same).map_or(0, |other| other.oldest)
    };
    let known: Vec<WaitingPackets> = core.waits.clone();
    let mut waits = merged(sum.waits, core.waits, |place| {
        ((place.configuration.clone(), place.element.clone()), &mut place.packets)
    });
    waits.iter_mut().for_each(|place| place.oldest = place.oldest.max(oldest(&known, place)));
    sorting::sort_by_key(&mut losses, |place| std::cmp::Reverse(place.packets));
    sorting::sort_by_key(&mut discards, |place| std::cmp::Reverse(place.packets));
    sorting::sort_by_key(&mut waits, |place| std::cmp::Reverse(place.packets));
    PacketAccount {
        fates: add_fates(sum.fates, core.fates),
        waiting: sum.waiting.saturating_add(core.waiting),
        oldest: sum.oldest.max(core.oldest),
        in_use: sum.in_use.saturating_add(core.in_use),
        losses,
        discards,
        waits,
    }
}

fn add_fates(sum: PacketFates, core: PacketFates) -> PacketFates {
    let add = u64::saturating_add;
    PacketFates {
        received: add(sum.received, core.received),
        made: add(sum.made, core.made),
        copied: add(sum.copied, core.copied),
        delivered: add(sum.delivered, core.delivered),
        discarded: add(sum.discarded, core.discarded),
        consumed: add(sum.consumed, core.consumed),
        merged: add(sum.merged, core.merged),
    }
}

/// Two lists as one, in which the counts of equal keys are added up.
fn merged<T, Key: PartialEq>(
    mut sum: Vec<T>,
    more: Vec<T>,
    entry: impl for<'a> Fn(&'a mut T) -> (Key, &'a mut u64),
) -> Vec<T> {
    for mut other in more {
        let (key, packets) = entry(&mut other);
        let packets = *packets;
        let same = sum.iter_mut().map(&entry).find(|(known, _)| *known == key);
        match same {
            Some((_, count)) => *count = count.saturating_add(packets),
            None => sum.push(other),
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use boundary::{DiscardedPackets, LostPackets};

    #[test]
    fn the_counters_of_cores_add_up() {
        let core = |packets: u64, element: &str| Stats {
            busy_cycles: packets,
            heap_used: 2 * packets,
            heap_peak: 3 * packets,
            lost_events: 4 * packets,
            ports: vec![PortStats {
                received_packets: packets,
                received_bytes: 60 * packets,
                sent_packets: 5 * packets,
                sent_bytes: 300 * packets,
                full_drops: 6 * packets,
            }],
            drops: vec![("denied".into(), packets), (element.into(), 1)],
            account: PacketAccount {
                fates: PacketFates {
                    received: packets,
                    made: packets,
                    copied: packets,
                    delivered: packets,
                    discarded: packets,
                    consumed: packets,
                    merged: packets,
                },
                waiting: packets,
                oldest: packets,
                in_use: packets,
                losses: vec![LostPackets {
                    configuration: String::new(),
                    element: element.into(),
                    reason: "denied".into(),
                    packets,
                }],
                discards: vec![DiscardedPackets {
                    configuration: String::new(),
                    connection: "a -> b".into(),
                    packets,
                }],
                waits: vec![WaitingPackets {
                    configuration: String::new(),
                    element: "queue".into(),
                    packets,
                    oldest: packets,
                }],
            },
        };
        let sum = add_stats(core(1, "one"), core(10, "two"));
        let mut expected = core(11, "one");
        expected.drops = vec![("denied".into(), 11), ("one".into(), 1), ("two".into(), 1)];
        expected.account.losses = [core(10, "two"), core(1, "one")].map(|core| core.account.losses).concat();
        expected.account.oldest = 10;
        expected.account.waits[0].oldest = 10;
        assert_eq!(sum, expected);
    }

    #[test]
    fn the_last_words_of_cores_add_up() {
        let core = |packets: u64, lost: &[(u16, u64)]| PublishedAccount {
            fates: PacketFates { received: packets, ..PacketFates::default() },
            received: packets,
            sent: 2 * packets,
            lost: lost.to_vec(),
            unlisted: 3 * packets,
        };
        let sum = add_account(core(1, &[(3, 1), (5, 2)]), core(10, &[(1, 4), (5, 8)]));
        assert_eq!(sum, core(11, &[(1, 4), (3, 1), (5, 10)]));
    }
}
