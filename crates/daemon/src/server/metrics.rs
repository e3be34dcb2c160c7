//! Metrics for Prometheus.

use super::authorization::RefusalCounts;
use super::port_metrics;
use super::respond::ErrorResponse;
use super::service_metrics;
use crate::supervisor::PortFigures;
use api::{BoxStatus, ChainDetail, ErrorCode, HostStatus, ServiceStatus, SwitchStatus};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Labels = Vec<(&'static str, String)>;

/// Seconds are not whole numbers.
type Seconds = Family<Labels, Counter<f64, AtomicU64>>;

/// The data that the metrics are derived from.
#[derive(Debug)]
pub(super) struct MetricsInput {
    pub(super) host: HostStatus,
    pub(super) boxes: Vec<BoxStatus>,
    pub(super) switches: Vec<SwitchStatus>,
    pub(super) ports: Vec<PortFigures>,
    pub(super) services: Vec<ServiceStatus>,
    pub(super) chains: Vec<ChainDetail>,
    /// Packets that captures dropped.
    pub(super) capture_lost: u64,
    /// Requests over TCP without the token.
    pub(super) refused: Arc<RefusalCounts>,
}

/// Renders all metrics.
fn text(figures: &MetricsInput) -> Result<String, std::fmt::Error> {
    let MetricsInput { host, boxes, switches, ports: of_ports, services, chains, capture_lost, refused } =
        figures;
    let mut registry = Registry::with_prefix("clickbox");
    let mut counter = |name: &str, help: &str| {
        let family = Family::<Labels, Counter>::default();
        registry.register(name, help, family.clone());
        family
    };
    let received = counter("box_received_packets", "Packets that a box received");
    let received_bytes = counter("box_received_bytes", "Bytes that a box received");
    let sent = counter("box_sent_packets", "Packets that a box sent");
    let sent_bytes = counter("box_sent_bytes", "Bytes that a box sent");
    let drops = counter(
        "box_dropped_packets",
        "Dropped packets of a box by reason, at its ports and in its elements",
    );
    let fates = counter("box_packets", "Packets of a box by what became of them, as it reports");
    let restarts = counter("box_restarts", "Restarts of a box after crashes");
    let overstays = counter("box_overstays", "Turns in which a box was preempted");
    let lost = counter("box_lost_events", "Console lines and pieces of files that were lost");
    let switched = counter("switch_received_packets", "Packets that a switch received");
    let switched_bytes = counter("switch_received_bytes", "Bytes that a switch received");
    let forwarded = counter("switch_sent_packets", "Packets that a switch sent");
    let forwarded_bytes = counter("switch_sent_bytes", "Bytes that a switch sent");
    let switch_drops = counter("switch_dropped_packets", "Lost packets of a switch by reason");
    let lookups = counter(
        "switch_flow_lookups",
        "Packets that a steering switch looked up, by whether its cache knew them",
    );
    let evictions = counter(
        "switch_flow_cache_evictions",
        "Results that left the cache of a steering switch for want of room",
    );
    let fragments = counter(
        "switch_fragments",
        "Later fragments at a steering switch, by whether their first fragment was known",
    );
    let lost_reports = counter(
        "switch_lost_reports",
        "Reports of removed entries to controllers that were lost because too many waited",
    );
    let refusals = counter("api_refused_requests", "Requests over TCP without the daemon's token by reason");
    for (reason, count) in [
        ("no_token", &refused.no_token),
        ("wrong_token", &refused.wrong_token),
        ("throttled", &refused.throttled),
    ] {
        let labels = vec![("reason", reason.to_string())];
        refusals.get_or_create(&labels).inc_by(count.load(Ordering::Relaxed));
    }
    let mut gauge = |name: &str, help: &str| {
        let family = Family::<Labels, Gauge>::default();
        registry.register(name, help, family.clone());
        family
    };
    let state = gauge("box_state", "State of a box: 1 for its current state");
    let memory = gauge("box_memory_bytes", "Private memory that a box has touched");
    let heap = gauge("box_heap_bytes", "Bytes of a box's heap in use");
    let waiting = gauge("box_waiting_packets", "Packets that wait in the elements of a box, as it reports");
    let ports = gauge("switch_ports", "Ports of a switch");
    let addresses = gauge("switch_addresses", "Addresses that a switch knows");
    let entries =
        gauge("switch_flow_entries", "Flows of users and entries of controllers in a steering switch");
    let counts = gauge("count", "Number of objects of each kind");
    let captures: Counter = Counter::default();
    captures.inc_by(*capture_lost);
    registry.register(
        "capture_lost_packets",
        "Packets that captures skipped because readers were too slow",
        captures,
    );
    let (own, switching) = (Seconds::default(), Seconds::default());
    registry.register("box_cpu_seconds", "Processor time of a box itself", own.clone());
    registry.register(
        "box_switch_seconds",
        "Processor time of the switch for a box's packets",
        switching.clone(),
    );
    let oldest = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    registry.register(
        "box_oldest_waiting_packet_seconds",
        "How long the oldest packet has waited in an element of a box, at most",
        oldest.clone(),
    );
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for status in boxes {
        let labels = || vec![("box", status.name.to_string()), ("owner", status.owner.to_string())];
        let with = |name: &'static str, value: String| {
            let mut labels = labels();
            labels.push((name, value));
            labels
        };
        let (traffic, usage) = (&status.traffic, &status.usage);
        received.get_or_create(&labels()).inc_by(traffic.received_packets);
        received_bytes.get_or_create(&labels()).inc_by(traffic.received_bytes);
        sent.get_or_create(&labels()).inc_by(traffic.sent_packets);
        sent_bytes.get_or_create(&labels()).inc_by(traffic.sent_bytes);
        for (reason, count) in &status.drops {
            drops.get_or_create(&with("reason", reason.clone())).inc_by(*count);
        }
        for (fate, count) in status.account.counters() {
            fates.get_or_create(&with("fate", fate.into())).inc_by(count);
        }
        waiting.get_or_create(&labels()).set(signed(status.account.waiting));
        oldest.get_or_create(&labels()).set(status.account.oldest_ns as f64 / 1e9);
        restarts.get_or_create(&labels()).inc_by(status.restarts.into());
        overstays.get_or_create(&labels()).inc_by(usage.overstays);
        lost.get_or_create(&labels()).inc_by(usage.lost_events);
        // The API's name for the state.
        let name = serde_json::to_value(status.state).ok();
        let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or("unknown").to_string();
        state.get_or_create(&with("state", name)).set(1);
        memory.get_or_create(&labels()).set(signed(usage.memory.0));
        heap.get_or_create(&labels()).set(signed(usage.heap.0));
        own.get_or_create(&labels()).inc_by(usage.own_ns as f64 / 1e9);
        switching.get_or_create(&labels()).inc_by(usage.switch_ns as f64 / 1e9);
    }
    for status in switches {
        let labels = || vec![("switch", status.name.to_string())];
        switched.get_or_create(&labels()).inc_by(status.traffic.received_packets);
        switched_bytes.get_or_create(&labels()).inc_by(status.traffic.received_bytes);
        forwarded.get_or_create(&labels()).inc_by(status.traffic.sent_packets);
        forwarded_bytes.get_or_create(&labels()).inc_by(status.traffic.sent_bytes);
        for (reason, count) in &status.drops {
            let mut labels = labels();
            labels.push(("reason", reason.clone()));
            switch_drops.get_or_create(&labels).inc_by(*count);
        }
        ports.get_or_create(&labels()).set(status.ports.into());
        addresses.get_or_create(&labels()).set(status.addresses.into());
        if let Some(steering) = &status.steering {
            let with = |name: &'static str, value: &str| {
                let mut labels = labels();
                labels.push((name, value.to_string()));
                labels
            };
            let misses = steering.lookups.saturating_sub(steering.cache_hits);
            lookups.get_or_create(&with("cache", "hit")).inc_by(steering.cache_hits);
            lookups.get_or_create(&with("cache", "miss")).inc_by(misses);
            evictions.get_or_create(&labels()).inc_by(steering.cache_evictions);
            fragments.get_or_create(&with("first", "known")).inc_by(steering.fragments_followed);
            fragments.get_or_create(&with("first", "unknown")).inc_by(steering.fragments_unknown);
            lost_reports.get_or_create(&labels()).inc_by(steering.lost_reports);
            entries.get_or_create(&with("of", "users")).set(steering.flows.into());
            entries.get_or_create(&with("of", "controllers")).set(steering.controller_entries.into());
        }
    }
    port_metrics::register(&mut registry, of_ports);
    service_metrics::register(&mut registry, services, chains);
    let there = &host.counts;
    for (kind, count) in [
        ("boxes", there.boxes),
        ("running", there.running),
        ("switches", there.switches),
        ("ports", there.ports),
        ("stacks", there.stacks),
    ] {
        counts.get_or_create(&vec![("kind", kind.to_string())]).set(count.into());
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Converts to the text format 0.0.4: a counter's description has the same name as its samples, with `_total`, and
/// there is no end marker.
fn plain(text: &str) -> String {
    let counters: HashSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut plain = String::with_capacity(text.len() + counters.len() * 2 * "_total".len());
    for line in text.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(kind), Some(name), Some(rest)) if counters.contains(name) => {
                plain += &format!("# {kind} {name}_total {rest}\n");
            }
            _ => {
                plain += line;
                plain.push('\n');
            }
        }
    }
    plain
}

/// Responds with all metrics: as OpenMetrics to clients that accept it, else in the older text format.
pub(super) fn respond(headers: &HeaderMap, figures: &MetricsInput) -> Result<Response, ErrorResponse> {
    let text = text(figures)
        .map_err(|_| ErrorResponse::new(ErrorCode::Internal, "the counters can't be written"))?;
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    let (media, text) = match accepted.contains("application/openmetrics-text") {
        true => ("application/openmetrics-text; version=1.0.0; charset=utf-8", text),
        false => ("text/plain; version=0.0.4; charset=utf-8", plain(&text)),
    };
    Ok(([(CONTENT_TYPE, media)], text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_their_packets_by_fate_and_reason_and_switches_their_lookups() {
        let status = serde_json::json!({
            "name": "fw", "owner": "default", "state": "running", "sandbox": "process",
            "created": "2026-01-31T12:00:00.000Z", "uptime_ms": 0, "restarts": 0, "configurations": ["main"],
            "memory": "8M", "ring": 256, "cpu_weight": 100, "dedicated": false, "restart": "never",
            "usage": { "own_ns": 0, "switch_ns": 0 },
            "traffic": { "received_packets": 0, "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0 },
            "rates": {
                "received_packets": 0.0, "received_bits": 0.0, "sent_packets": 0.0, "sent_bits": 0.0,
                "dropped_packets": 0.0, "cores": 0.0
            },
            "drops": { "denied": 7 },
            "account": { "discarded": 5, "waiting": 3, "oldest_ns": 1_500_000_000 }
        });
        let host = serde_json::json!({
            "version": "1", "image": "x", "started": "2026-01-31T12:00:00.000Z", "pid": 1, "sandboxes": [],
            "kvm": { "usable": false }, "cgroup": "none", "cores": 1, "workers": 1, "memory": 1,
            "memory_available": 1,
            "counts": { "boxes": 1, "running": 1, "switches": 0, "ports": 0, "stacks": 0 }
        });
        let switch = serde_json::json!({
            "name": "lan", "mode": "steering", "age_seconds": 300, "addresses_per_port": 1024,
            "created": "2026-01-31T12:00:00.000Z", "ports": 2, "addresses": 0,
            "traffic": { "received_packets": 0, "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0 },
            "rates": {
                "received_packets": 0.0, "received_bits": 0.0, "sent_packets": 0.0, "sent_bits": 0.0,
                "dropped_packets": 0.0, "cores": 0.0
            },
            "steering": {
                "flows": 4, "controller_entries": 5, "lookups": 100, "cache_hits": 90, "cache_evictions": 6,
                "fragments_followed": 7, "fragments_unknown": 8, "lost_reports": 9
            }
        });
        let input = MetricsInput {
            host: serde_json::from_value(host).unwrap(),
            boxes: vec![serde_json::from_value(status).unwrap()],
            switches: vec![serde_json::from_value(switch).unwrap()],
            ports: Vec::new(),
            services: Vec::new(),
            chains: Vec::new(),
            capture_lost: 0,
            refused: Arc::default(),
        };
        let text = plain(&text(&input).unwrap());
        for line in [
            "clickbox_box_dropped_packets_total{box=\"fw\",owner=\"default\",reason=\"denied\"} 7\n",
            "clickbox_box_packets_total{box=\"fw\",owner=\"default\",fate=\"discarded\"} 5\n",
            "clickbox_box_packets_total{box=\"fw\",owner=\"default\",fate=\"made\"} 0\n",
            "clickbox_box_waiting_packets{box=\"fw\",owner=\"default\"} 3\n",
            "clickbox_box_oldest_waiting_packet_seconds{box=\"fw\",owner=\"default\"} 1.5\n",
            "clickbox_switch_flow_lookups_total{switch=\"lan\",cache=\"hit\"} 90",
            "clickbox_switch_flow_lookups_total{switch=\"lan\",cache=\"miss\"} 10",
            "clickbox_switch_flow_cache_evictions_total{switch=\"lan\"} 6",
            "clickbox_switch_flow_entries{switch=\"lan\",of=\"users\"} 4",
            "clickbox_switch_flow_entries{switch=\"lan\",of=\"controllers\"} 5",
            "clickbox_switch_fragments_total{switch=\"lan\",first=\"known\"} 7",
            "clickbox_switch_fragments_total{switch=\"lan\",first=\"unknown\"} 8",
            "clickbox_switch_lost_reports_total{switch=\"lan\"} 9",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn the_older_format_describes_counters_by_their_samples() {
        let text = "# HELP a_packets Packets of a counter.\n# TYPE a_packets counter\n\
                    a_packets_total{reason=\"# TYPE b counter\"} 3\n\
                    # HELP b Boxes.\n# TYPE b gauge\nb{state=\"on\"} 1\n# EOF\n";
        let expected = "# HELP a_packets_total Packets of a counter.\n# TYPE a_packets_total counter\n\
                        a_packets_total{reason=\"# TYPE b counter\"} 3\n\
                        # HELP b Boxes.\n# TYPE b gauge\nb{state=\"on\"} 1\n";
        assert_eq!(plain(text), expected);
    }
}
