//! Metrics of services and chains.

use api::{ChainDetail, InstanceStatus, RefusedTuples, RemovedInstances, ServiceStatus};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;

/// Adds the figures of services, as sums over their instances, and of the hops of chains. Counters of services include the
/// instances that were removed, so that they never decrease.
pub(super) fn register(registry: &mut Registry, services: &[ServiceStatus], chains: &[ChainDetail]) {
    let counters = [
        ("service_packets", "Packets for a service, also those that were lost"),
        ("service_lost_packets", "Packets lost because a service had no instance or no room for them"),
        ("service_overruled_packets", "Answers of the instances of a service that the switch overruled"),
        (
            "service_taken_over_flows",
            "Flows whose state the instances of a service took over from other instances",
        ),
        ("chain_packets", "Packets for a hop of a chain, also those that were lost"),
        ("chain_bytes", "Bytes of the packets for a hop of a chain"),
        (
            "chain_lost_packets",
            "Packets lost at a hop of a chain, because its service had no instance or no room for them",
        ),
        ("chain_left_packets", "Packets that left a chain at its end"),
        ("chain_left_bytes", "Bytes that left a chain at its end"),
        (
            "service_refused_tuples",
            "Packets of the instances of a translator whose flow was not learnt, by reason",
        ),
    ];
    let counters = counters.map(|(name, help)| {
        let family = Counters::default();
        registry.register(name, help, family.clone());
        family
    });
    let gauges = [
        ("service_instances", "Instances of a service by state"),
        ("service_flows", "Flows that are assigned to the instances of a service"),
        ("service_kept_flows", "Flows whose state stays at drained instances, which cannot hand it over"),
        ("service_waiting_packets", "Packets that wait in the rings of the instances of a service"),
        (
            "chain_hop_nanoseconds",
            "Mean time from the delivery of a packet to a hop of a chain to its return",
        ),
    ];
    let gauges = gauges.map(|(name, help)| {
        let family = Gauges::default();
        registry.register(name, help, family.clone());
        family
    });
    services.iter().for_each(|status| of_service(status, &counters, &gauges));
    chains.iter().for_each(|chain| of_chain(chain, &counters, &gauges));
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn of_service(status: &ServiceStatus, counters: &[Counters; 10], gauges: &[Gauges; 5]) {
    let labels = || vec![("service", status.name.to_string()), ("owner", status.owner.to_string())];
    let sum =
        |figure: fn(&InstanceStatus) -> u64| status.instances.iter().map(figure).fold(0, u64::saturating_add);
    let [packets, lost, overruled, taken_over, ..] = counters;
    let RemovedInstances { packets: sent, lost: losses, overruled: answers, taken_over: flows, refused } =
        status.removed;
    let with = |removed: u64, figure: fn(&InstanceStatus) -> u64| removed.saturating_add(sum(figure));
    let none = status.no_instance;
    packets.get_or_create(&labels()).inc_by(with(sent.saturating_add(none), |instance| instance.packets));
    lost.get_or_create(&labels()).inc_by(with(losses.saturating_add(none), |instance| instance.lost));
    overruled.get_or_create(&labels()).inc_by(with(answers, |instance| instance.overruled));
    taken_over.get_or_create(&labels()).inc_by(with(flows, |instance| instance.taken_over));
    if status.translation.is_some() {
        let there =
            status.instances.iter().filter_map(|instance| Some(instance.translation.as_ref()?.refused));
        let of_reason = |reason: &str, figure: fn(RefusedTuples) -> u64| {
            let all = there.clone().chain([refused]).map(figure).fold(0, u64::saturating_add);
            let labels = [labels(), vec![("reason", reason.to_string())]].concat();
            counters[9].get_or_create(&labels).inc_by(all);
        };
        of_reason("out_of_range", |refused| refused.out_of_range);
        of_reason("taken", |refused| refused.taken);
        of_reason("no_room", |refused| refused.no_room);
    }
    let [instances, flows, kept, waiting, _] = gauges;
    for (state, count) in [
        ("up", sum(|instance| u64::from(instance.up && !instance.draining))),
        ("down", sum(|instance| u64::from(!instance.up && !instance.draining))),
        ("draining", sum(|instance| u64::from(instance.draining))),
    ] {
        let mut labels = labels();
        labels.push(("state", state.to_string()));
        instances.get_or_create(&labels).set(signed(count));
    }
    flows.get_or_create(&labels()).set(signed(sum(|instance| instance.flows)));
    let kept_flows = sum(|instance| instance.handover.as_ref().map_or(0, |handover| handover.kept));
    kept.get_or_create(&labels()).set(signed(kept_flows));
    waiting.get_or_create(&labels()).set(signed(sum(|instance| instance.waiting)));
}

fn of_chain(detail: &ChainDetail, counters: &[Counters; 10], gauges: &[Gauges; 5]) {
    let (status, [_, _, _, _, packets, bytes, lost, left, left_bytes, _]) = (&detail.status, counters);
    let labels =
        || vec![("switch", status.chain.switch.to_string()), ("chain", status.chain.name.to_string())];
    let directed = |labels: &Labels, direction: &str| {
        let mut labels = labels.clone();
        labels.push(("direction", direction.to_string()));
        labels
    };
    let both = ["forward", "reverse"];
    for (number, hop) in (1u32..).zip(&status.hops) {
        let mut labels = labels();
        labels.extend([("hop", number.to_string()), ("service", hop.service.to_string())]);
        for (direction, traffic) in both.into_iter().zip(&hop.traffic) {
            let labels = directed(&labels, direction);
            packets.get_or_create(&labels).inc_by(traffic.packets);
            bytes.get_or_create(&labels).inc_by(traffic.bytes);
            lost.get_or_create(&labels).inc_by(traffic.lost);
        }
        if let Some(time) = hop.mean_ns {
            gauges[4].get_or_create(&labels).set(signed(time));
        }
    }
    for (direction, traffic) in both.into_iter().zip(&status.left) {
        let labels = directed(&labels(), direction);
        left.get_or_create(&labels).inc_by(traffic.packets);
        left_bytes.get_or_create(&labels).inc_by(traffic.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[test]
    fn a_service_counts_removed_instances_and_packets_without_an_instance() {
        let status = serde_json::from_value(serde_json::json!({
            "name": "fw", "switch": "lan", "created": "2026-01-31T12:00:00.000Z", "faces": "in=0", "replicas": 1,
            "instances": [{
                "name": "fw-1", "up": true, "draining": false, "flows": 3, "packets": 1000, "lost": 2, "overruled": 1,
                "taken_over": 5,
                "translation": {
                    "range": "203.0.113.1:1024-2047", "learnt": 3, "refused": { "out_of_range": 1, "taken": 2, "no_room": 0 }
                }
            }],
            "translation": { "ranges": ["203.0.113.1:1024-2047"] },
            "removed": {
                "packets": 500, "lost": 4, "overruled": 2, "taken_over": 9,
                "refused": { "out_of_range": 10, "taken": 20, "no_room": 30 }
            },
            "no_instance": 7
        }));
        let mut registry = Registry::default();
        register(&mut registry, &[status.unwrap()], &[]);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let expected =
            [("packets", 1507), ("lost_packets", 13), ("overruled_packets", 3), ("taken_over_flows", 14)];
        for (name, count) in expected {
            let line = format!("service_{name}_total{{service=\"fw\",owner=\"default\"}} {count}");
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
        for (reason, count) in [("out_of_range", 11), ("taken", 22), ("no_room", 30)] {
            let labels = format!("service=\"fw\",owner=\"default\",reason=\"{reason}\"");
            let line = format!("service_refused_tuples_total{{{labels}}} {count}");
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
    }
}
