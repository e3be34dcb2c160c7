//! Runs the rounds.

use super::books::{Books, Signals};
use super::definitions::Definitions;
use super::migration::{MigrationError, downgrade};
use super::processes::{Processes, Victim};
use super::rebuild_event::{last_event, rebuild_ms, rebuilt};
use crate::statistics::Times;
use crate::temporary_folder::TemporaryFolder;
use api::client::{Client, ClientError};
use random::Random;
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time between the start of the clients and the first kill, and between two kills.
const MAX_LIFE: Duration = Duration::from_millis(120);
const MAX_PAUSE: Duration = Duration::from_millis(5);

/// How long the processes may take until they agree with the books. Boxes restart with growing pauses.
const AGREE_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two comparisons.
const COMPARE_PAUSE: Duration = Duration::from_millis(5);

/// What is killed in a round, one after the other.
const ROUNDS: [&[Victim]; 8] = [
    &[Victim::Daemon],
    &[Victim::Daemon],
    &[Victim::Fabric],
    &[Victim::Launcher],
    &[Victim::Fabric, Victim::Daemon],
    &[Victim::Daemon, Victim::Launcher],
    &[Victim::Launcher, Victim::Fabric],
    &[Victim::Daemon, Victim::Fabric, Victim::Launcher],
];

/// Of so many rounds that kill the daemon, one is followed by a migration.
const MIGRATION_INTERVAL: u32 = 3;

/// The prefixes of the clients' names.
const PREFIXES: [&str; 2] = ["a-", "b-"];

/// How much is killed.
#[derive(Clone, Copy, Debug)]
pub struct KillPlan {
    /// The number of rounds.
    pub rounds: u32,
    /// What decides all choices. Timing differs between runs all the same.
    pub seed: u64,
}

/// What was killed, and that everything acknowledged was there afterwards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kills {
    /// What decided all choices.
    pub seed: u64,
    /// Rounds.
    pub rounds: u32,
    /// Daemons that were killed.
    pub daemons: u64,
    /// Launchers that were killed.
    pub launchers: u64,
    /// Fabrics that were killed.
    pub fabrics: u64,
    /// Daemons that were killed while they started with a store of an earlier version. They are not among `daemons`.
    pub migrations: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Operations that were interrupted.
    pub interrupted: u64,
    /// Boxes that ran when a fabric was killed alone: the mean.
    pub boxes: f64,
    /// Times in which the daemon rebuilt these fabrics with all boxes, in milliseconds.
    pub rebuild_ms: Option<Times>,
}

/// Why the rounds ended early.
#[derive(Debug)]
pub enum KillsError {
    /// The temporary folder can't be created.
    Folder(io::Error),
    /// A daemon can't be started.
    Daemon(io::Error),
    /// The store can't be turned into one of an earlier version.
    Migration(MigrationError),
    /// A call to the daemon failed.
    Client(Box<ClientError>),
    /// A daemon has something else than what was acknowledged.
    Disagreement {
        /// The seed.
        seed: u64,
        /// The round, from 0.
        round: u32,
        /// What the books say, with the open operation, and what the daemon has.
        books: String,
        /// What the daemon has.
        found: Box<Definitions>,
    },
    /// An operation failed as none may.
    Operation {
        /// The seed.
        seed: u64,
        /// The operation, and its error.
        failure: String,
    },
}

impl fmt::Display for KillsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(_) => f.write_str("can't create a temporary folder"),
            Self::Daemon(_) => f.write_str("the daemon can't be started"),
            Self::Migration(_) => f.write_str("no store of an earlier version can be made"),
            Self::Client(_) => f.write_str("a request to the daemon failed"),
            Self::Disagreement { seed, round, books, found } => write!(
                f,
                "in round {round} of --seed {seed}, the daemon has neither what was acknowledged nor that with the open \
                 operation\nbooks: {books}\nfound: {found:#?}"
            ),
            Self::Operation { seed, failure } => {
                write!(f, "with --seed {seed}, an operation failed: {failure}")
            }
        }
    }
}

impl std::error::Error for KillsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder(error) | Self::Daemon(error) => Some(error),
            Self::Migration(error) => Some(error),
            Self::Client(error) => Some(error.as_ref()),
            Self::Disagreement { .. } | Self::Operation { .. } => None,
        }
    }
}

impl From<ClientError> for KillsError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Kills processes of `program daemon` in all rounds of a plan. Calls `progress` after each round, with the number of
/// rounds that are done and what was killed so far.
pub fn kills(
    program: &Path,
    plan: KillPlan,
    progress: &mut dyn FnMut(u32, &Kills),
) -> Result<Kills, KillsError> {
    let folder = TemporaryFolder::new().map_err(KillsError::Folder)?;
    let mut random = Random::new(plan.seed);
    let mut processes = Processes::new(program, folder.path());
    let mut books = [Books::default(), Books::default()];
    let mut done = Kills {
        seed: plan.seed,
        rounds: plan.rounds,
        daemons: 0,
        launchers: 0,
        fabrics: 0,
        migrations: 0,
        acknowledged: 0,
        interrupted: 0,
        boxes: 0.0,
        rebuild_ms: None,
    };
    let (mut rebuilds, mut boxes) = (Vec::new(), 0);
    for round in 0..plan.rounds {
        if !processes.has_daemon() {
            processes.start().map_err(KillsError::Daemon)?;
        }
        let client = processes.client()?;
        compare(&client, &mut books, (plan.seed, round))?;
        let last = last_event(&client)?;
        let victims = ROUNDS[random.below(ROUNDS.len() as u32) as usize];
        run_round(&mut processes, &mut books, victims, (&mut random, &mut done))?;
        if victims.contains(&Victim::Daemon) && random.below(MIGRATION_INTERVAL) == 0 {
            downgrade(&processes.store(), &mut random).map_err(KillsError::Migration)?;
            books.iter_mut().for_each(|books| books.definitions.forget_rules());
            processes.start_and_kill(&mut random).map_err(KillsError::Daemon)?;
            done.migrations += 1;
        }
        done.interrupted += books.iter().filter(|books| books.open.is_some()).count() as u64;
        if victims == [Victim::Fabric] {
            compare(&client, &mut books, (plan.seed, round))?;
            if let Some(time) = rebuilt(&client, last, false)?.as_ref().and_then(rebuild_ms) {
                rebuilds.push(time);
                let all = books.iter().flat_map(|books| books.definitions.boxes.values());
                boxes += all.filter(|entry| entry.is_running).count();
            }
        }
        done.acknowledged = books.iter().map(|books| books.acknowledged).sum();
        progress(round + 1, &done);
    }
    if !processes.has_daemon() {
        processes.start().map_err(KillsError::Daemon)?;
    }
    compare(&processes.client()?, &mut books, (plan.seed, plan.rounds))?;
    if !rebuilds.is_empty() {
        done.boxes = boxes as f64 / rebuilds.len() as f64;
        done.rebuild_ms = Some(Times::of(&rebuilds));
    }
    Ok(done)
}

/// Lets clients work, and kills processes meanwhile.
fn run_round(
    processes: &mut Processes,
    books: &mut [Books; 2],
    victims: &[Victim],
    (random, done): (&mut Random, &mut Kills),
) -> Result<(), KillsError> {
    let signals = Signals::default();
    let clients = [processes.client()?, processes.client()?];
    let seeds = [random.next(), random.next()];
    let mut pause = |most: Duration| Duration::from_micros(random.below_u64(most.as_micros() as u64));
    let (life, rest) = (pause(MAX_LIFE), pause(MAX_LIFE));
    // Found before: a process whose launcher was killed has another parent.
    let found: Vec<_> = victims.iter().map(|victim| (*victim, processes.find(*victim))).collect();
    let failure = thread::scope(|scope| {
        let mut working = Vec::new();
        for (((books, prefix), seed), client) in books.iter_mut().zip(PREFIXES).zip(seeds).zip(&clients) {
            let signals = &signals;
            working.push(scope.spawn(move || books.run(client, &mut Random::new(seed), prefix, signals)));
        }
        thread::sleep(life);
        signals.has_killed.store(true, Ordering::SeqCst);
        for (victim, found) in &found {
            let killed = processes.kill(*victim, found);
            match victim {
                Victim::Daemon => done.daemons += killed,
                Victim::Launcher => done.launchers += killed,
                Victim::Fabric => done.fabrics += killed,
            }
            thread::sleep(pause(MAX_PAUSE));
        }
        thread::sleep(rest);
        signals.is_over.store(true, Ordering::SeqCst);
        // A client that panicked has no failure to report, and its books disagree.
        working.into_iter().find_map(|client| client.join().ok().flatten())
    });
    match failure {
        Some(failure) => Err(KillsError::Operation { seed: done.seed, failure }),
        None => Ok(()),
    }
}

/// Compares the books with what the daemon has, until it has restarted all boxes.
fn compare(client: &Client, books: &mut [Books; 2], (seed, round): (u64, u32)) -> Result<(), KillsError> {
    for (books, prefix) in books.iter_mut().zip(PREFIXES) {
        let start = Instant::now();
        loop {
            let found = Definitions::read(client, prefix);
            match found {
                Ok(found) if books.agree(&found) => break,
                Ok(found) if start.elapsed() > AGREE_TIMEOUT => {
                    return Err(KillsError::Disagreement {
                        seed,
                        round,
                        books: format!("{:#?}\nopen: {:?}", books.definitions, books.open),
                        found: Box::new(found),
                    });
                }
                // While the fabric is being rebuilt, it can't be asked.
                Err(error) if start.elapsed() > AGREE_TIMEOUT => return Err(error.into()),
                _ => thread::sleep(COMPARE_PAUSE),
            }
        }
    }
    Ok(())
}
