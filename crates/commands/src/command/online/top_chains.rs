//! `clickbox top --chains`: a live table of the hops of chains.

use std::time::{Duration, Instant};

use api::{ChainDetail, Time, operation};
use serde::Serialize;

use super::chain::{HOPS, hop_rows};
use crate::columns::shorten;
use crate::error::CommandError;
use crate::number_format::{count, grouped};
use crate::online::{self, Client, Column, Table};
use crate::{output, screen};

/// The place in [`HOPS`] of the packets since the start. Those of a second say what happens now.
const SINCE_START: usize = 5;

/// The daemon measures each second. After this time, what it has not measured is printed without rates.
const MEASURING: Duration = Duration::from_secs(3);

/// The interval between two questions whether it has.
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);

/// One update.
#[derive(Serialize)]
struct Sample {
    time: Time,
    chains: Vec<ChainDetail>,
}

/// Shows chains until a key ends it, or for `left` updates.
pub(super) fn run(
    client: &Client,
    is_live: bool,
    is_json: bool,
    interval: Duration,
    mut left: u64,
) -> Result<(), CommandError> {
    let keys = is_live.then(screen::Keys::new);
    if !is_live {
        wait_for_rates(client)?;
    }
    loop {
        let chains = client.ask(&operation::LIST_CHAINS, &[])?;
        left = left.saturating_sub(1);
        if is_json {
            output::json_line(&Sample { time: Time::now(), chains });
        } else if is_live {
            let (width, height) = screen::size();
            screen::draw(&lines(&chains, width.saturating_sub(1), height.saturating_sub(1)));
        } else {
            output::text(&(lines(&chains, usize::MAX, usize::MAX).join("\n") + "\n"));
        }
        if left == 0 {
            return Ok(());
        }
        match &keys {
            Some(keys) => {
                if keys.wait(interval).is_some_and(screen::Keys::ends) {
                    return Ok(());
                }
            }
            None => std::thread::sleep(interval),
        }
    }
}

/// Waits until the rates of all chains are measured: a script may ask once, for chains that it has just created.
fn wait_for_rates(client: &Client) -> Result<(), CommandError> {
    let end = Instant::now() + MEASURING;
    let is_measured = |chains: Vec<ChainDetail>| chains.iter().all(|detail| !detail.rates.is_empty());
    while !is_measured(client.ask(&operation::LIST_CHAINS, &[])?) && Instant::now() < end {
        std::thread::sleep(QUESTION_INTERVAL);
    }
    Ok(())
}

/// The lines of the table for a terminal of this size.
fn lines(chains: &[ChainDetail], width: usize, height: usize) -> Vec<String> {
    let is_measured = chains.iter().any(|detail| !detail.rates.is_empty());
    let sum = |figure: fn(&ChainDetail) -> f64| match is_measured {
        true => online::rate(chains.iter().map(figure).sum()),
        false => "-".into(),
    };
    let mut rows = Vec::new();
    for detail in chains {
        let chain = &detail.status.chain;
        let name = format!("{}/{}", chain.switch, chain.name);
        rows.extend(hop_rows(detail).into_iter().map(|row| {
            let shown = row.into_iter().enumerate().filter(|(place, _)| *place != SINCE_START);
            std::iter::once(name.clone()).chain(shown.map(|(_, text)| text)).collect()
        }));
    }
    let rows: Vec<Vec<String>> = rows;
    let head = format!(
        "{}; in {}/s, lost {}/s",
        count(chains.len() as u64, "chain"),
        sum(|detail| detail.rates.first().map_or(0.0, |both| both[0].packets)),
        sum(|detail| detail.rates.iter().flatten().map(|rates| rates.lost).sum()),
    );
    let hops = HOPS.iter().enumerate().filter(|(place, _)| *place != SINCE_START).map(|(_, column)| column);
    let columns: Vec<Column> = [Column::flexible("CHAIN", 10)].iter().chain(hops).copied().collect();
    // Header, titles and footer.
    let room = height.saturating_sub(3).max(1);
    let hidden = rows.len().saturating_sub(room);
    let shown = if hidden > 0 { room.saturating_sub(1) } else { rows.len() };
    let table = Table { columns: &columns, rows: rows.iter().take(shown).cloned().collect() };
    let mut lines = vec![head];
    lines.extend(table.lines(width));
    if hidden > 0 {
        lines.push(format!("and {} more", grouped((rows.len() - shown) as u64)));
    }
    if height < usize::MAX {
        lines.push("q quits".into());
    }
    lines.iter().map(|line| shorten(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hops_fit_the_terminal() {
        let chain = |number: u32| -> ChainDetail {
            let traffic = serde_json::json!([
                { "packets": 9, "bytes": 1, "lost": 0 }, { "packets": 0, "bytes": 0, "lost": 0 }
            ]);
            serde_json::from_value(serde_json::json!({
                "name": format!("a-chain-{number}"), "switch": "lan", "services": ["fw"], "to": "wan0",
                "hops": [{ "service": "fw", "traffic": traffic }], "left": traffic,
                "rates": [[
                    { "packets": 100.0, "bits": 800.0, "lost": 1.0 }, { "packets": 0.0, "bits": 0.0, "lost": 0.0 }
                ]]
            }))
            .expect("a chain")
        };
        let chains: Vec<ChainDetail> = (0..40).map(chain).collect();
        let new = ChainDetail { rates: Vec::new(), ..chain(40) };
        let head = lines(&[new], 79, 23).remove(0);
        assert_eq!(head, "1 chain; in -/s, lost -/s", "nothing is measured yet");
        let lines = lines(&chains, 79, 23);
        assert_eq!(lines.len(), 23);
        assert!(lines.iter().all(|line| line.chars().count() <= 79), "{lines:#?}");
        assert_eq!(lines.first().map(String::as_str), Some("40 chains; in 4.00k/s, lost 40/s"));
        assert!(
            lines.get(2).is_some_and(|line| line.starts_with("lan/a-chain-0") && line.contains("100")),
            "{lines:#?}"
        );
        assert_eq!(lines.get(21).map(String::as_str), Some("and 21 more"));
    }
}
