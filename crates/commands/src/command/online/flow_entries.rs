//! `clickbox flow ls --controllers`: what the OpenFlow controllers of a switch have added.

use api::{
    ControllerEntries, ControllerEntriesQuery, ControllerEntry, ControllerGroup, ControllerMeter, operation,
};

use super::switch::SwitchArguments;
use crate::error::CommandError;
use crate::online::{self, Column, Table};
use crate::output;

const ENTRIES: &[Column] = &[
    Column::number("TABLE"),
    Column::number("PRIORITY"),
    Column::flexible("MATCH", 10),
    Column::text("IN-PORT"),
    Column::flexible("ACTIONS", 10),
    Column::number("PACKETS"),
    Column::number("BYTES"),
    Column::number("AGE"),
    Column::text("ENDS"),
    Column::text("COOKIE"),
];

const GROUPS: &[Column] = &[Column::number("GROUP"), Column::text("TYPE"), Column::flexible("BUCKETS", 10)];

const METERS: &[Column] = &[Column::number("METER"), Column::flexible("BANDS", 10)];

/// Prints all of it.
pub(super) fn list(named: &SwitchArguments) -> Result<(), CommandError> {
    let client = named.daemon.client()?;
    let mut all = ControllerEntries::default();
    loop {
        let query = ControllerEntriesQuery { from: all.next };
        let page = client.call(&operation::LIST_CONTROLLER_ENTRIES, &[named.name.as_str()], &query, &())?;
        all.entries.extend(page.entries);
        all.groups.extend(page.groups);
        all.meters.extend(page.meters);
        all.next = page.next;
        if all.next.is_none() {
            break;
        }
    }
    // As the switch asks them: tables in their order, and of a table the entries of highest priority first.
    all.entries.sort_by_key(|entry| (entry.table, u16::MAX - entry.priority));
    if named.json {
        output::json(&all);
        return Ok(());
    }
    let table = Table { columns: ENTRIES, rows: all.entries.iter().map(entry_row).collect() };
    let none = match all.entries.is_empty()
        && client.ask(&operation::SHOW_SWITCH, &[named.name.as_str()])?.controllers.is_empty()
    {
        true => format!("switch {} has no controllers", named.name),
        false => format!("controllers have added no flow entries to switch {}", named.name),
    };
    online::print(&table, &none);
    let groups = Table { columns: GROUPS, rows: all.groups.iter().map(group_row).collect() };
    let meters = Table { columns: METERS, rows: all.meters.iter().map(meter_row).collect() };
    for table in [groups, meters].iter().filter(|table| !table.rows.is_empty()) {
        output::text("\n");
        online::print(table, "");
    }
    Ok(())
}

fn entry_row(entry: &ControllerEntry) -> Vec<String> {
    let count = |count: Option<u64>| count.map_or("-".into(), |count| count.to_string());
    let idle = entry.idle_seconds.map(|seconds| format!("idle {seconds}s"));
    let hard = entry.timeout_seconds.map(|seconds| format!("after {seconds}s"));
    let ends: Vec<String> = [idle, hard].into_iter().flatten().collect();
    vec![
        entry.table.to_string(),
        entry.priority.to_string(),
        entry.condition.clone().unwrap_or_else(|| "any".into()),
        entry.in_port.clone().unwrap_or_else(|| "any".into()),
        if entry.instructions.is_empty() { "drop".into() } else { entry.instructions.join(",") },
        count(entry.packets),
        count(entry.bytes),
        format!("{}s", entry.age_seconds),
        if ends.is_empty() { "-".into() } else { ends.join(", ") },
        entry.cookie.clone(),
    ]
}

fn group_row(group: &ControllerGroup) -> Vec<String> {
    vec![group.number.to_string(), group.group_type.clone(), group.buckets.join("; ")]
}

fn meter_row(meter: &ControllerMeter) -> Vec<String> {
    vec![meter.number.to_string(), meter.bands.join("; ")]
}
