//! Decides how many instances a service has, from their load. It measures nothing and has no clock: a look is a second.

use api::ReplicaRange;

/// Thousandths of the time that instances are busy from which on they have too much to do.
const HIGH_BUSY: u32 = 700;

/// Thousandths of the room in the rings of one instance that are taken from which on it has too much to do.
const HIGH_WAITING: u32 = 500;

/// Thousandths of the time that the remaining instances would be busy, below which there is one too many.
const LOW_BUSY: u32 = 400;

/// Thousandths of the room in rings up to which nothing speaks against fewer instances.
const LOW_WAITING: u32 = 50;

/// Consecutive looks with too much to do after which there is one instance more.
const LOOKS_UP: u32 = 3;

/// Consecutive looks with too little to do after which there is one instance less. More than to scale out: an instance too many
/// costs less than one too few.
const LOOKS_DOWN: u32 = 30;

/// Looks after a change in which nothing is decided: only new flows reach a new instance.
const PAUSE: u32 = 5;

/// Looks after a change that failed.
const PAUSE_AFTER_FAILURE: u32 = 60;

/// The load of a service since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Thousandths of the time that the instances were busy, on average. `None` if they poll, and so always are.
    pub(super) busy: Option<u32>,
    /// Thousandths of the room in the rings that were taken, of the instance with the most.
    pub(super) waiting: u32,
    /// Packets that were lost for lack of room.
    pub(super) lost: u64,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The number of instances.
    pub(super) replicas: u16,
    /// Why, as the end of a sentence.
    pub(super) why: String,
}

/// What was seen of a service so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaler {
    high: u32,
    low: u32,
    pause: u32,
}

impl Scaler {
    /// Decides on a service with this number of instances.
    pub(super) fn look(&mut self, range: ReplicaRange, replicas: u16, load: Load) -> Option<Decision> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let high = high(load).filter(|_| replicas < range.max);
        let low = low(load, replicas).filter(|_| replicas > range.min);
        self.high = if high.is_some() { self.high + 1 } else { 0 };
        self.low = if low.is_some() { self.low + 1 } else { 0 };
        let decision = match (high, low) {
            (Some(why), _) if self.high >= LOOKS_UP => Decision { replicas: replicas + 1, why },
            (_, Some(why)) if self.low >= LOOKS_DOWN => Decision { replicas: replicas - 1, why },
            _ => return None,
        };
        *self = Self { pause: PAUSE, ..Self::default() };
        Some(decision)
    }

    /// Notes that a decision could not be carried out.
    pub(super) fn failed(&mut self) {
        self.pause = PAUSE_AFTER_FAILURE;
    }
}

/// Why instances have too much to do.
fn high(Load { busy, waiting, lost }: Load) -> Option<String> {
    if lost > 0 {
        return Some(format!("packets were lost for lack of room for {LOOKS_UP} s, {lost} in the last one"));
    }
    if waiting >= HIGH_WAITING {
        return Some(format!(
            "the rings of an instance were at least half full for {LOOKS_UP} s, {} % at last",
            waiting / 10
        ));
    }
    let busy = busy.filter(|busy| *busy >= HIGH_BUSY)?;
    Some(format!(
        "its instances were busy for {} % of the last second, and for at least {} % for {LOOKS_UP} s",
        busy / 10,
        HIGH_BUSY / 10
    ))
}

/// Why one instance less would do.
fn low(Load { busy, waiting, lost }: Load, replicas: u16) -> Option<String> {
    if lost > 0 || waiting > LOW_WAITING {
        return None;
    }
    let Some(busy) = busy else {
        return Some(format!("next to nothing waited in its rings for {LOOKS_DOWN} s"));
    };
    let rest = busy * u32::from(replicas) / u32::from(replicas.saturating_sub(1).max(1));
    (rest < LOW_BUSY).then(|| {
        format!(
            "one less would have been busy for less than {} % of the time for {LOOKS_DOWN} s, {} % at last",
            LOW_BUSY / 10,
            rest / 10
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Load = Load { busy: Some(0), waiting: 0, lost: 0 };

    /// The numbers of instances after each look at which they change, with the number of the look.
    fn run(replicas: u16, loads: impl IntoIterator<Item = Load>) -> Vec<(usize, u16, String)> {
        let range = ReplicaRange { min: 1, max: 4 };
        let (mut scaler, mut replicas, mut changes) = (Scaler::default(), replicas, Vec::new());
        for (look, load) in (1..).zip(loads) {
            if let Some(decision) = scaler.look(range, replicas, load) {
                replicas = decision.replicas;
                changes.push((look, replicas, decision.why));
            }
        }
        changes
    }

    fn numbers(changes: &[(usize, u16, String)]) -> Vec<(usize, u16)> {
        changes.iter().map(|(look, replicas, _)| (*look, *replicas)).collect()
    }

    #[test]
    fn a_service_grows_with_its_load_up_to_the_limit() {
        for (load, why) in [
            (
                Load { busy: Some(850), ..IDLE },
                "busy for 85 % of the last second, and for at least 70 % for 3 s",
            ),
            (Load { waiting: 600, ..IDLE }, "half full for 3 s, 60 % at last"),
            (Load { lost: 7, ..IDLE }, "lost for lack of room for 3 s, 7 in the last one"),
            (Load { busy: None, lost: 7, ..IDLE }, "7 in the last one"),
        ] {
            let changes = run(1, [load; 100]);
            // Three looks, then a pause of five.
            assert_eq!(numbers(&changes), [(3, 2), (11, 3), (19, 4)]);
            assert!(changes.iter().all(|(.., found)| found.contains(why)), "{changes:?}");
        }
        // Short bursts change nothing.
        let burst = [
            Load { busy: Some(1000), ..IDLE },
            Load { busy: Some(1000), ..IDLE },
            Load { busy: Some(500), ..IDLE },
        ];
        assert_eq!(run(2, burst.into_iter().cycle().take(300)), []);
    }

    #[test]
    fn a_service_shrinks_when_one_instance_less_would_do() {
        let changes = run(4, [IDLE; 200]);
        assert_eq!(numbers(&changes), [(30, 3), (65, 2), (100, 1)]);
        assert!(changes[0].2.contains("less than 40 % of the time for 30 s, 0 % at last"), "{changes:?}");
        // Two that are busy for 19 % make one for 38 %; with 20 % they stay.
        assert_eq!(numbers(&run(2, [Load { busy: Some(199), ..IDLE }; 40])), [(30, 1)]);
        assert_eq!(run(2, [Load { busy: Some(200), ..IDLE }; 100]), []);
        // What waits or is lost speaks against it, also for a moment.
        for other in [Load { waiting: 51, ..IDLE }, Load { lost: 1, ..IDLE }] {
            let loads = [IDLE; 29].into_iter().chain([other]);
            assert_eq!(run(2, loads.cycle().take(300)), []);
        }
        // Of instances that poll it is not known how busy they are.
        let polling = Load { busy: None, ..IDLE };
        assert_eq!(numbers(&run(2, [polling; 40])), [(30, 1)]);
    }

    /// A load that is just too much for N instances is not too little for N + 1.
    #[test]
    fn a_constant_load_does_not_swing() {
        for total in (0..4000).step_by(7) {
            let (mut scaler, mut replicas, mut last) = (Scaler::default(), 2, 0);
            let range = ReplicaRange { min: 1, max: 4 };
            for look in 0..400 {
                let load = Load { busy: Some(total / u32::from(replicas)), ..IDLE };
                if let Some(decision) = scaler.look(range, replicas, load) {
                    (replicas, last) = (decision.replicas, look);
                }
            }
            assert!(last < 100, "{total} thousandths still change at look {last}");
        }
    }

    #[test]
    fn after_a_failure_nothing_is_decided_for_a_minute() {
        let range = ReplicaRange { min: 1, max: 4 };
        let mut scaler = Scaler::default();
        let load = Load { lost: 1, ..IDLE };
        let looks = |scaler: &mut Scaler| (1..).find(|_| scaler.look(range, 1, load).is_some()).unwrap();
        assert_eq!(looks(&mut scaler), 3);
        scaler.failed();
        assert_eq!(looks(&mut scaler), 63);
    }
}
