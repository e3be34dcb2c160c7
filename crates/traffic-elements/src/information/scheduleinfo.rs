//! `ScheduleInfo`: sets how often tasks run.

use element::arguments::Raw;
use element::prelude::*;
use element::text;

/// Sets how often tasks run. Each argument is `ELEMENT FACTOR`.
///
/// A task with factor 2 runs twice as often as one with the default of 1. `COMPOUND/ FACTOR` applies to all elements of
/// a compound element. Factors for the same element multiply.
///
/// ## Differences
///
/// Entries for one element in different compound elements multiply; in Click the inner one replaces the outer one.
/// Even a factor of 0 does not stop a task.
/// ```click
/// ScheduleInfo(busy 2, quiet 0.5);
/// busy :: InfiniteSource(LIMIT 2, STOP true) -> Discard;
/// quiet :: InfiniteSource(LIMIT 2) -> Discard;
/// ```
/// ```expect
/// busy.tickets = 2048
/// quiet.tickets = 512
/// ```
#[derive(Args)]
#[element(
    name = "ScheduleInfo",
    group = "information",
    ports = "0/0",
    phase = "information",
    shards = "independent"
)]
pub struct ScheduleInfoArgs {
    /// Elements, each followed by its factor.
    #[arg(rest)]
    factors: Vec<Raw>,
}

pub struct ScheduleInfo {
    factors: Vec<(String, f64)>,
}

/// Maximum number of tickets that a factor can give a task.
const MAX_TICKETS: f64 = 32_768.0;

impl Element for ScheduleInfo {
    type Args = ScheduleInfoArgs;

    fn new(args: ScheduleInfoArgs, setup: &mut Setup) -> Result<ScheduleInfo, SetupError> {
        let mut factors = Vec::new();
        for Raw(argument) in &args.factors {
            match text::words(argument).as_slice() {
                [] => {}
                [name, factor] if f64::from_argument(factor, setup).is_ok_and(|factor| factor >= 0.0) => {
                    let qualified = match setup.scope() {
                        "" => name.clone(),
                        scope => format!("{scope}/{name}"),
                    };
                    factors.push((qualified, f64::from_argument(factor, setup).unwrap_or(1.0)));
                }
                // Reported as a warning; the configuration still runs.
                _ => setup.notes.push("expected ‘ELEMENTNAME PARAM’".into()),
            }
        }
        Ok(ScheduleInfo { factors })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let runtime = cx.runtime();
        for element in 0..runtime.element_count() {
            let name = runtime.element_name(element);
            let concerns = |entry: &str| name == entry || (entry.ends_with('/') && name.starts_with(entry));
            let mut factors =
                self.factors.iter().filter(|(entry, _)| concerns(entry)).map(|(_, factor)| factor).peekable();
            if factors.peek().is_some() {
                let tickets = f64::from(runtime.tickets(element)) * factors.product::<f64>();
                runtime.set_tickets(element, tickets.clamp(1.0, MAX_TICKETS) as u32);
            }
        }
        Ok(())
    }
}
