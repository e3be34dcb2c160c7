//! Random early detection: decides which packets to drop before a queue is full.

use element::prelude::*;

use super::average::Average;
use super::watched::WatchedQueues;
use element::arguments::Probability;

/// Highest threshold: 16 bits, so that products fit.
const MAX_THRESHOLD: u32 = 0xffff;
/// Probability one in fixed point.
const ONE: u32 = 1 << 16;
/// While a queue is empty, its average decays once per this many milliseconds.
const IDLE_DECAY_INTERVAL: i64 = 20;

/// Parameters of random early detection.
#[derive(Clone, Copy, Debug)]
pub struct RedParameters {
    /// Average queue length below which nothing is dropped.
    pub min_threshold: u32,
    /// Average queue length at which the drop probability reaches `max_p`.
    pub max_threshold: u32,
    /// Drop probability at `max_threshold`.
    pub max_p: Probability<16>,
    /// Above `max_threshold`: raise the probability gradually to one at twice that length, or jump to one.
    pub gentle: bool,
    /// Exponent of the EWMA weight; 0 uses the current length.
    pub stability: u32,
}

impl RedParameters {
    /// The parameters in the syntax of RED's arguments.
    pub fn text(&self, watched: &WatchedQueues) -> String {
        let RedParameters { min_threshold: min, max_threshold: max, max_p, gentle, stability } = self;
        let (max_p, queues) = (max_p.text(), watched.names(" "));
        let gentle = if *gentle { "" } else { ", GENTLE false" };
        format!("{min}, {max}, {max_p}, QUEUES {}, STABILITY {stability}{gentle}", queues.trim_end())
    }
}
pub struct RandomEarlyDetection {
    parameters: RedParameters,
    average: Average,
    /// Slope and offset of the drop probability below and above the upper threshold.
    below: (i64, i64),
    above: (i64, i64),
    /// Packets since the last drop; -1 below the lower threshold.
    count: i64,
    random: i64,
    /// Time span in which the queue was last empty.
    empty: Option<i64>,
}

impl RandomEarlyDetection {
    /// Validates the parameters.
    pub fn new(parameters: RedParameters) -> Result<RandomEarlyDetection, SetupError> {
        let problem = if parameters.max_threshold > MAX_THRESHOLD {
            format!("MAX_THRESH must be <= {MAX_THRESHOLD}")
        } else if parameters.min_threshold > parameters.max_threshold {
            "MIN_THRESH must be <= MAX_THRESH".into()
        } else if parameters.stability > 16 {
            "STABILITY must be between 0 and 16".into()
        } else {
            let mut early = RandomEarlyDetection {
                parameters,
                average: Average::new(parameters.stability),
                below: (0, 0),
                above: (0, 0),
                count: -1,
                random: 0,
                empty: None,
            };
            early.set_slopes();
            return Ok(early);
        };
        Err(SetupError::new(problem))
    }

    /// The parameters, with the current `max_p`.
    pub fn parameters(&self) -> RedParameters {
        self.parameters
    }

    /// The average queue length.
    pub fn average(&self) -> &Average {
        &self.average
    }

    /// Takes over the average of `other`.
    pub fn take_average(&mut self, other: &RandomEarlyDetection) {
        let stability = self.average.stability();
        self.average = other.average;
        self.average.set_stability(stability);
    }

    /// Changes `max_p`.
    pub fn set_max_p(&mut self, max_p: u32) {
        self.parameters.max_p = Probability(max_p);
        self.set_slopes();
    }

    fn set_slopes(&mut self) {
        let RedParameters { min_threshold: min, max_threshold: max, max_p: Probability(max_p), .. } =
            self.parameters;
        self.below = match max.saturating_sub(min) {
            0 => (0, 1),
            range => ((max_p / range).into(), i64::from(max_p) * i64::from(min) / i64::from(range)),
        };
        let rest = ONE.saturating_sub(max_p);
        self.above = (rest.checked_div(max).unwrap_or(0).into(), i64::from(ONE) - 2 * i64::from(max_p));
    }

    /// Adds an observation at steady time `now` and returns the length that counts.
    fn observe(&mut self, length: usize, now: Timestamp) -> u32 {
        if self.average.stability() == 0 {
            return length as u32;
        }
        if length > 0 {
            self.average.observe(length);
            self.empty = None;
        } else {
            let span = now.millis() / IDLE_DECAY_INTERVAL;
            self.average.observe_none(self.empty.map_or(1, |last| span - last));
            self.empty = Some(span);
        }
        self.average.rounded()
    }

    /// Whether to drop the current packet.
    pub fn should_drop(&mut self, length: usize, now: Timestamp, mut random: impl FnMut() -> u32) -> bool {
        let average = self.observe(length, now);
        let RedParameters { min_threshold, max_threshold, max_p, gentle, .. } = self.parameters;
        let all = if gentle && max_p.0 != ONE { max_threshold * 2 } else { max_threshold };
        if average <= min_threshold || average > all {
            self.count = -1;
            return average > min_threshold;
        }
        let (slope, offset) = if average <= max_threshold { self.below } else { self.above };
        let probability = ((slope * self.average.scaled()) >> 10) - offset;
        self.count += 1;
        let mut draw = || i64::from((random() >> 5) & 0xffff);
        if self.count > 0 && probability > 0 && self.count > self.random / probability {
            self.count = 0;
            self.random = draw();
            return true;
        }
        if self.count == 0 {
            self.random = draw();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    fn early(stability: u32, max_p: u32) -> RandomEarlyDetection {
        let parameters = RedParameters {
            min_threshold: 5,
            max_threshold: 50,
            max_p: Probability(max_p),
            gentle: true,
            stability,
        };
        RandomEarlyDetection::new(parameters).expect("the parameters are in order")
    }

    /// Packets dropped of 10,000 that meet a queue of each length, without an average.
    fn drops_at(lengths: [usize; 6], max_p: u32) -> [usize; 6] {
        let mut random = Random::new(1);
        lengths.map(|length| {
            let mut early = early(0, max_p);
            let now = Timestamp::from_millis(1);
            (0..10_000).filter(|_| early.should_drop(length, now, || random.next() as u32)).count()
        })
    }

    #[test]
    fn without_an_average_the_probability_has_three_steps() {
        let lengths = [5, 6, 50, 51, 100, 101];
        assert_eq!(drops_at(lengths, ONE / 50), [0, 0, 0, 0, 0, 10_000]);
        assert_eq!(drops_at(lengths, ONE / 2), [0, 0, 0, 0, 0, 10_000]);
        assert_eq!(drops_at(lengths, ONE), [0, 0, 0, 10_000, 10_000, 10_000]);
        // Gaps between drops are distributed evenly from 1 to 1 / (2 * 0.75 - 1), so two of three packets are dropped.
        let [below @ .., at, between, above] = drops_at(lengths, ONE / 4 * 3);
        assert_eq!((below, above), ([0; 3], 10_000));
        assert!((6_500..6_833).contains(&at) && (6_500..6_833).contains(&between), "{at}, {between}");
    }

    /// How many packets pass from one drop to the next at a steady queue length, the dropped packet included.
    fn gaps_between_drops(length: usize) -> Vec<u32> {
        let mut early = early(4, ONE / 50);
        let mut random = Random::new(1);
        let mut drop = || early.should_drop(length, Timestamp::from_millis(1), || random.next() as u32);
        // The average reaches the length, and the first gap, which may have begun before that, ends.
        (0..200).for_each(|_| _ = drop());
        while !drop() {}
        let mut gaps = Vec::new();
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            if drop() {
                gaps.push(gap);
                gap = 0;
            }
        }
        gaps
    }

    /// With probability p, gaps between drops are distributed evenly from 1 to 1/p: halfway to the upper threshold, at
    /// it, and halfway from it to twice that length.
    #[test]
    fn drops_some_packets_between_the_thresholds() {
        for (length, longest) in [(27, 102), (50, 50), (75, 2)] {
            let gaps = gaps_between_drops(length);
            let most = gaps.iter().copied().max().expect("something is dropped");
            assert!((longest - longest / 20..=longest + 1).contains(&most), "{length}: {most}");
            let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
            let expected = f64::from(longest + 1) / 2.0;
            assert!((0.95..1.05).contains(&(mean / expected)), "{length}: {mean} instead of {expected}");
        }
    }

    #[test]
    fn equal_and_zero_thresholds_do_not_divide_by_zero() {
        for max_threshold in [0, 5] {
            let parameters = RedParameters {
                min_threshold: max_threshold,
                max_threshold,
                max_p: Probability(0),
                gentle: true,
                stability: 1,
            };
            let mut early = RandomEarlyDetection::new(parameters).expect("the parameters are in order");
            let mut drop = |length| early.should_drop(length, Timestamp::MAX, || u32::MAX);
            assert!(!(0..=max_threshold as usize).any(&mut drop), "nothing up to the thresholds");
            (0..20).for_each(|_| _ = drop(20));
            assert!(drop(20), "everything above twice the thresholds");
        }
    }
}
