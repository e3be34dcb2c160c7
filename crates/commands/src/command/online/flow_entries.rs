//! `clickbox flow ls --controllers`: what the OpenFlow controllers of a switch have added.

use api::{
    ControllerBand, ControllerBucket, ControllerEntries, ControllerEntriesQuery, ControllerEntry,
    ControllerGroup, ControllerMeter, SwitchName, operation,
};

use crate::error::CommandError;
use crate::online::{self, Client, Column, Table};
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

/// A group has a row, and each of its buckets has one below it.
const GROUPS: &[Column] = &[
    Column::number("GROUP"),
    Column::text("TYPE"),
    Column::number("PACKETS"),
    Column::number("BYTES"),
    Column::flexible("BUCKET", 10),
];

/// The same of meters and bands.
const METERS: &[Column] = &[
    Column::number("METER"),
    Column::number("PACKETS"),
    Column::number("BYTES"),
    Column::flexible("BAND", 10),
];

/// Prints all of it.
pub(super) fn list(client: &Client, switch: &SwitchName, json: bool) -> Result<(), CommandError> {
    let mut all = ControllerEntries::default();
    loop {
        let query = ControllerEntriesQuery { from: all.next };
        let page = client.call(&operation::LIST_CONTROLLER_ENTRIES, &[switch.as_str()], &query, &())?;
        all.entries.extend(page.entries);
        all.groups.extend(page.groups);
        all.meters.extend(page.meters);
        all.next = page.next;
        if all.next.is_none() {
            break;
        }
    }
    // As the switch asks them: tables in their order, and of a table the entries of highest priority first.
    sorting::sort_by_key(&mut all.entries, |entry| (entry.table, u16::MAX - entry.priority));
    if json {
        output::json(&all);
        return Ok(());
    }
    let table = Table { columns: ENTRIES, rows: all.entries.iter().map(entry_row).collect() };
    let none = match all.entries.is_empty()
        && client.ask(&operation::SHOW_SWITCH, &[switch.as_str()])?.controllers.is_empty()
    {
        true => format!("switch {switch} has no controllers"),
        false => format!("controllers have added no flow entries to switch {switch}"),
    };
    online::print(&table, &none);
    let groups = Table { columns: GROUPS, rows: all.groups.iter().flat_map(group_rows).collect() };
    let meters = Table { columns: METERS, rows: all.meters.iter().flat_map(meter_rows).collect() };
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

fn group_rows(group: &ControllerGroup) -> Vec<Vec<String>> {
    let number = group.number.to_string();
    let whole =
        [number, group.group_type.clone(), group.packets.to_string(), group.bytes.to_string(), String::new()];
    let bucket = |bucket: &ControllerBucket| {
        let (packets, bytes) = (bucket.packets.to_string(), bucket.bytes.to_string());
        vec![String::new(), String::new(), packets, bytes, bucket.definition.clone()]
    };
    std::iter::once(whole.to_vec()).chain(group.buckets.iter().map(bucket)).collect()
}

fn meter_rows(meter: &ControllerMeter) -> Vec<Vec<String>> {
    let whole = [meter.number.to_string(), meter.packets.to_string(), meter.bytes.to_string(), String::new()];
    let band = |band: &ControllerBand| {
        vec![String::new(), band.packets.to_string(), band.bytes.to_string(), band.definition.clone()]
    };
    std::iter::once(whole.to_vec()).chain(meter.bands.iter().map(band)).collect()
}
