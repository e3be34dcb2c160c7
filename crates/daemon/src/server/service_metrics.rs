//! Metrics of services and chains.

use api::{ChainDetail, InstanceStatus, RemovedInstances, ServiceStatus};
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
        ("service_packets", "Packets sent to the instances of a service"),
        ("service_lost_packets", "Packets lost because an instance of a service had no room for them"),
        ("service_overruled_packets", "Answers of the instances of a service that the switch overruled"),
        (
            "service_taken_over_flows",
            "Flows whose state the instances of a service took over from other instances",
        ),
        ("chain_packets", "Packets sent to a hop of a chain"),
        ("chain_bytes", "Bytes sent to a hop of a chain"),
        ("chain_lost_packets", "Packets lost at a hop of a chain"),
        ("chain_left_packets", "Packets that left a chain at its end"),
        ("chain_left_bytes", "Bytes that left a chain at its end"),
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

fn of_service(status: &ServiceStatus, counters: &[Counters; 9], gauges: &[Gauges; 5]) {
    let labels = || vec![("service", status.name.to_string()), ("owner", status.owner.to_string())];
    let sum =
        |figure: fn(&InstanceStatus) -> u64| status.instances.iter().map(figure).fold(0, u64::saturating_add);
    let [packets, lost, overruled, taken_over, ..] = counters;
    let RemovedInstances { packets: sent, lost: losses, overruled: answers, taken_over: flows } =
        status.removed;
    let with = |removed: u64, figure: fn(&InstanceStatus) -> u64| removed.saturating_add(sum(figure));
    packets.get_or_create(&labels()).inc_by(with(sent, |instance| instance.packets));
    lost.get_or_create(&labels()).inc_by(with(losses, |instance| instance.lost));
    overruled.get_or_create(&labels()).inc_by(with(answers, |instance| instance.overruled));
    taken_over.get_or_create(&labels()).inc_by(with(flows, |instance| instance.taken_over));
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

fn of_chain(detail: &ChainDetail, counters: &[Counters; 9], gauges: &[Gauges; 5]) {
    let (status, [_, _, _, _, packets, bytes, lost, left, left_bytes]) = (&detail.status, counters);
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
