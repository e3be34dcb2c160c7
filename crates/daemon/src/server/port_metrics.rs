//! Metrics of the ports of switches.

use crate::supervisor::PortFigures;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;

/// Adds the figures of ports. A reason has a series once a port has lost a packet for it, so that a thousand ports have some
/// thousand series.
pub(super) fn register(registry: &mut Registry, ports: &[PortFigures]) {
    let counters = [
        ("port_received_packets", "Packets that a port of a switch received"),
        ("port_received_bytes", "Bytes that a port of a switch received"),
        ("port_sent_packets", "Packets that a port of a switch sent"),
        ("port_sent_bytes", "Bytes that a port of a switch sent"),
        ("port_dropped_packets", "Lost packets of a port of a switch by reason"),
    ];
    let counters = counters.map(|(name, help)| {
        let family = Counters::default();
        registry.register(name, help, family.clone());
        family
    });
    let up = Family::<Labels, Gauge>::default();
    registry.register("port_up", "Whether packets can pass a port of a switch: 1 or 0", up.clone());
    for figures in ports {
        let labels = vec![
            ("switch", figures.switch.to_string()),
            ("port", figures.port.to_string()),
            ("driver", figures.driver.to_string()),
        ];
        let [received, received_bytes, sent, sent_bytes, dropped] = &counters;
        let counts = &figures.counters;
        received.get_or_create(&labels).inc_by(counts.received_packets);
        received_bytes.get_or_create(&labels).inc_by(counts.received_bytes);
        sent.get_or_create(&labels).inc_by(counts.sent_packets);
        sent_bytes.get_or_create(&labels).inc_by(counts.sent_bytes);
        for (reason, count) in &counts.drops {
            let mut labels = labels.clone();
            labels.push(("reason", reason.clone()));
            dropped.get_or_create(&labels).inc_by(*count);
        }
        up.get_or_create(&labels).set(figures.is_up.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use std::collections::BTreeMap;

    /// A port with these numbers.
    fn port(name: &str, driver: &'static str, number: u64, is_up: bool) -> PortFigures {
        let drops = BTreeMap::from([("full".to_string(), number + 4)]);
        let counters = protocol::fabric::Counters {
            received_packets: number,
            received_bytes: number + 1,
            sent_packets: number + 2,
            sent_bytes: number + 3,
            drops: if number > 0 { drops } else { BTreeMap::new() },
        };
        let (switch, port) = ("lan".parse().unwrap(), name.parse().unwrap());
        PortFigures { switch, port, driver, counters, is_up }
    }

    #[test]
    fn each_port_has_its_counters_and_its_state() {
        let mut registry = Registry::with_prefix("clickbox");
        register(&mut registry, &[port("a", "tap", 10, true), port("b", "vhost_user", 0, false)]);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let mut found: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        found.sort_unstable();
        let [a, b] = [("a", "tap"), ("b", "vhost_user")]
            .map(|(port, driver)| format!("switch=\"lan\",port=\"{port}\",driver=\"{driver}\""));
        let mut expected = vec![
            format!("clickbox_port_dropped_packets_total{{{a},reason=\"full\"}} 14"),
            format!("clickbox_port_up{{{a}}} 1"),
            format!("clickbox_port_up{{{b}}} 0"),
        ];
        for (name, [of_a, of_b]) in [
            ("received_packets", [10, 0]),
            ("received_bytes", [11, 1]),
            ("sent_packets", [12, 2]),
            ("sent_bytes", [13, 3]),
        ] {
            expected.push(format!("clickbox_port_{name}_total{{{a}}} {of_a}"));
            expected.push(format!("clickbox_port_{name}_total{{{b}}} {of_b}"));
        }
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
