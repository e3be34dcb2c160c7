//! Measures current rates of traffic and CPU time.

use api::{BoxName, PortName, Rates, SwitchName};
use protocol::fabric::{PortStats, TrafficSnapshot};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The rates of the last interval.
#[derive(Debug, Default)]
pub(super) struct RateMeter {
    /// The last measurement: its time and the counters.
    last: Option<(Instant, TrafficSnapshot)>,
    /// What each box had used by then.
    used: BTreeMap<BoxName, Used>,
    /// Rates of boxes, from the box's side.
    pub(super) boxes: BTreeMap<BoxName, Rates>,
    /// CPUs in use by each core of a box with several.
    pub(super) cores: BTreeMap<BoxName, Vec<f64>>,
    /// Rates of switches.
    pub(super) switches: BTreeMap<SwitchName, Rates>,
    /// Rates of their ports.
    pub(super) ports: BTreeMap<(SwitchName, PortName), Rates>,
}

/// What a box has used and lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    /// CPU time.
    pub(super) time: Duration,
    /// That of each core, if there are several.
    pub(super) cores: Vec<Duration>,
    /// Packets that were lost inside it.
    pub(super) lost: u64,
}

/// Rates per second between two measurements.
pub(crate) fn rates(before: &PortStats, after: &PortStats, used: Duration, seconds: f64) -> Rates {
    let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    let (old, new) = (&before.counters, &after.counters);
    let drops = |stats: &PortStats| stats.counters.drops.values().sum();
    Rates {
        received_packets: rate(old.received_packets, new.received_packets),
        received_bits: 8.0 * rate(old.received_bytes, new.received_bytes),
        sent_packets: rate(old.sent_packets, new.sent_packets),
        sent_bits: 8.0 * rate(old.sent_bytes, new.sent_bytes),
        dropped_packets: rate(drops(before), drops(after)),
        cores: (used + after.cost.saturating_sub(before.cost)).as_secs_f64() / seconds,
    }
}

/// The rates from the box's side: what the switch sends, the box receives.
fn turned(rates: Rates) -> Rates {
    Rates {
        received_packets: rates.sent_packets,
        received_bits: rates.sent_bits,
        sent_packets: rates.received_packets,
        sent_bits: rates.received_bits,
        ..rates
    }
}

impl RateMeter {
    /// Adds a measurement.
    pub(super) fn advance(&mut self, now: Instant, snapshot: TrafficSnapshot, used: BTreeMap<BoxName, Used>) {
        if let Some((then, old)) = &self.last {
            let seconds = now.duration_since(*then).as_secs_f64().max(1e-3);
            let none = PortStats::default();
            self.boxes = used
                .iter()
                .map(|(name, used)| {
                    let (before, after) = (old.whole_box(name), snapshot.whole_box(name));
                    let then = self.used.get(name).unwrap_or(used);
                    let mut rates =
                        turned(rates(&before, &after, used.time.saturating_sub(then.time), seconds));
                    rates.dropped_packets += used.lost.saturating_sub(then.lost) as f64 / seconds;
                    (name.clone(), rates)
                })
                .collect();
            self.cores = used
                .iter()
                .filter(|(_, used)| !used.cores.is_empty())
                .map(|(name, used)| {
                    let then = self.used.get(name).unwrap_or(used);
                    let both = used.cores.iter().zip(&then.cores);
                    let rates = both.map(|(now, then)| now.saturating_sub(*then).as_secs_f64() / seconds);
                    (name.clone(), rates.collect())
                })
                .collect();
            self.switches = snapshot
                .switches
                .keys()
                .map(|name| {
                    let (before, after) = (old.switch(name), snapshot.switch(name));
                    (name.clone(), rates(&before, &after, Duration::ZERO, seconds))
                })
                .collect();
            self.ports = snapshot
                .switches
                .iter()
                .flat_map(|(switch, ports)| ports.iter().map(move |(port, stats)| (switch, port, stats)))
                .map(|(switch, port, after)| {
                    let before = old.switches.get(switch).and_then(|ports| ports.get(port)).unwrap_or(&none);
                    let rates = rates(before, after, Duration::ZERO, seconds);
                    ((switch.clone(), port.clone()), rates)
                })
                .collect();
        }
        self.last = Some((now, snapshot));
        self.used = used;
    }

    /// Forgets a switch that was removed: another one of its name begins at zero.
    pub(super) fn forget_switch(&mut self, name: &SwitchName) {
        self.switches.remove(name);
        self.ports.retain(|(switch, _), _| switch != name);
        if let Some((_, last)) = &mut self.last {
            last.switches.remove(name);
            last.removed.remove(name);
        }
    }

    /// The same for a port.
    pub(super) fn forget_port(&mut self, switch: &SwitchName, port: &PortName) {
        self.ports.remove(&(switch.clone(), port.clone()));
        if let Some((_, last)) = &mut self.last {
            last.remove_port(switch, port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::fabric::Counters;

    #[test]
    fn rates_cover_the_last_interval() {
        let mut meter = RateMeter::default();
        let name: BoxName = "fw".parse().unwrap();
        let mut snapshot = TrafficSnapshot::default();
        let stats = snapshot.boxes.entry(name.clone()).or_default().entry(0).or_default();
        stats.counters.received_packets = 100;
        stats.cost = Duration::from_millis(10);
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let used = |time| {
            let cores = vec![time / 4, time / 4 * 3];
            BTreeMap::from([(name.clone(), Used { time, cores, lost: time.as_secs() * 7 })])
        };
        meter.advance(start, snapshot.clone(), used(second));
        assert!(meter.boxes.is_empty());
        let stats = snapshot.boxes.entry(name.clone()).or_default().entry(0).or_default();
        stats.counters.received_packets = 300;
        stats.counters.received_bytes = 12_000;
        stats.cost = Duration::from_millis(210);
        meter.advance(start + 2 * second, snapshot.clone(), used(second + second / 2));
        let rates = meter.boxes[&name];
        assert_eq!((rates.sent_packets, rates.sent_bits, rates.received_packets), (100.0, 48_000.0, 0.0));
        assert!((rates.cores - 0.35).abs() < 1e-9, "{rates:?}");
        assert_eq!(rates.dropped_packets, 0.0);
        let cores = &meter.cores[&name];
        assert!(
            cores.len() == 2 && (cores[0] - 0.0625).abs() < 1e-9 && (cores[1] - 0.1875).abs() < 1e-9,
            "{cores:?}"
        );
        // A box that was replaced starts again at zero.
        meter.advance(start + 3 * second, snapshot, used(Duration::ZERO));
        assert_eq!((meter.boxes[&name].cores, &meter.cores[&name]), (0.0, &vec![0.0, 0.0]));
    }

    #[test]
    fn a_name_that_is_used_again_begins_at_zero() {
        let mut meter = RateMeter::default();
        let lan: SwitchName = "lan".parse().unwrap();
        let ports: [PortName; 2] = ["tap0", "tap1"].map(|name| name.parse().unwrap());
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let measure = |meter: &mut RateMeter, seconds, received| {
            let mut snapshot = TrafficSnapshot::default();
            for port in &ports {
                let stats =
                    snapshot.switches.entry(lan.clone()).or_default().entry(port.clone()).or_default();
                stats.counters.received_packets = received;
            }
            meter.advance(start + second * seconds, snapshot, BTreeMap::new());
            ports.each_ref().map(|port| meter.ports[&(lan.clone(), port.clone())].received_packets)
        };
        // The switch has what a removed port received.
        let mut removed = TrafficSnapshot::default();
        removed.switches.entry(lan.clone()).or_default().entry(ports[0].clone()).or_default().counters =
            Counters { received_packets: 100, ..Counters::default() };
        meter.last = Some((start, removed.clone()));
        meter.forget_port(&lan, &ports[0]);
        removed.remove_port(&lan, &ports[0]);
        assert_eq!(removed.switch(&lan).counters.received_packets, 100);
        removed.switches.entry(lan.clone()).or_default().entry(ports[1].clone()).or_default().counters =
            Counters { received_packets: 30, ..Counters::default() };
        meter.advance(start + second, removed, BTreeMap::new());
        assert_eq!(meter.switches[&lan].received_packets, 30.0);
        meter.last = Some((start, TrafficSnapshot::default()));
        assert_eq!(measure(&mut meter, 1, 100), [100.0, 100.0]);
        meter.forget_port(&lan, &ports[0]);
        assert_eq!(meter.ports.keys().map(|(_, port)| port).collect::<Vec<_>>(), [&ports[1]]);
        assert_eq!(measure(&mut meter, 2, 130), [130.0, 30.0]);
        meter.forget_switch(&lan);
        assert!(meter.ports.is_empty() && meter.switches.is_empty());
        assert_eq!(measure(&mut meter, 3, 7), [7.0, 7.0]);
    }
}
