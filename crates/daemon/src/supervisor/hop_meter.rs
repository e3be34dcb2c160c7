//! Measures the rates of the hops of chains.

use api::{ChainName, ChainStatus, HopRates, HopTraffic, SwitchName};
use std::collections::BTreeMap;
use std::time::Instant;

/// The samples of the hops of all chains.
#[derive(Debug, Default)]
pub(super) struct HopMeter(BTreeMap<(SwitchName, ChainName), HopSample>);

#[derive(Debug)]
struct HopSample {
    at: Instant,
    hops: Vec<[HopTraffic; 2]>,
    rates: Vec<[HopRates; 2]>,
}

impl HopMeter {
    /// Takes samples of all chains.
    pub(super) fn advance<'a>(&mut self, now: Instant, chains: impl Iterator<Item = &'a ChainStatus>) {
        let mut samples = BTreeMap::new();
        for status in chains {
            let key = (status.chain.switch.clone(), status.chain.name.clone());
            let hops: Vec<[HopTraffic; 2]> = status.hops.iter().map(|hop| hop.traffic).collect();
            let before = self.0.remove(&key).filter(|before| before.hops.len() == hops.len());
            let rates = before.map_or(Vec::new(), |before| {
                let seconds = now.saturating_duration_since(before.at).as_secs_f64();
                let pairs = before.hops.iter().zip(&hops);
                pairs.map(|(one, other)| [0, 1].map(|way| rates(one[way], other[way], seconds))).collect()
            });
            samples.insert(key, HopSample { at: now, hops, rates });
        }
        self.0 = samples;
    }

    /// The current rates of each hop of a chain.
    pub(super) fn rates(&self, switch: &SwitchName, chain: &ChainName) -> Vec<[HopRates; 2]> {
        let sample = self.0.get(&(switch.clone(), chain.clone()));
        sample.map_or(Vec::new(), |sample| sample.rates.clone())
    }
}

/// The rates between two samples. A counter that became smaller began again.
fn rates(before: HopTraffic, after: HopTraffic, seconds: f64) -> HopRates {
    let rate = |before: u64, after: u64| {
        let more = after.checked_sub(before).unwrap_or(after);
        if seconds > 0.0 { more as f64 / seconds } else { 0.0 }
    };
    HopRates {
        packets: rate(before.packets, after.packets),
        bits: 8.0 * rate(before.bytes, after.bytes),
        lost: rate(before.lost, after.lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{CreateChain, HopStatus};
    use std::time::Duration;

    fn status(packets: u64, hops: usize) -> ChainStatus {
        let traffic = HopTraffic { packets, bytes: 100 * packets, lost: packets / 10 };
        let hop = HopStatus {
            service: "ids".parse().unwrap(),
            traffic: [traffic, HopTraffic::default()],
            mean_ns: None,
            waiting: 0,
        };
        ChainStatus {
            chain: CreateChain {
                name: "web".parse().unwrap(),
                switch: "lan".parse().unwrap(),
                services: vec!["ids".parse().unwrap(); hops],
                from: None,
                to: "wan".parse().unwrap(),
                both_ways: false,
            },
            hops: vec![hop; hops],
            left: [HopTraffic::default(); 2],
        }
    }

    #[test]
    fn rates_are_those_between_two_samples() {
        let (mut meter, start) = (HopMeter::default(), Instant::now());
        let chain = (&"lan".parse().unwrap(), &"web".parse().unwrap());
        let mut at = |seconds, status: Option<ChainStatus>| {
            meter.advance(start + Duration::from_secs(seconds), status.iter());
            meter.rates(chain.0, chain.1)
        };
        assert!(at(0, Some(status(100, 1))).is_empty());
        let forward = HopRates { packets: 50.0, bits: 40_000.0, lost: 5.0 };
        assert_eq!(at(2, Some(status(200, 1))), [[forward, HopRates::default()]]);
        // The fabric was restarted.
        let again = HopRates { packets: 20.0, bits: 16_000.0, lost: 2.0 };
        assert_eq!(at(3, Some(status(20, 1))), [[again, HopRates::default()]]);
        assert!(at(4, Some(status(300, 2))).is_empty());
        assert!(at(5, None).is_empty());
        assert!(at(6, Some(status(300, 2))).is_empty());
    }
}
