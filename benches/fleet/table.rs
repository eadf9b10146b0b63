//! Aligned text: what was measured, rows side by side, and ratios.

use super::scenario::{FIRST_SYNC, LOAD, Outcome, RECONNECT, Step};

/// Rows under a head; the first column is aligned to the left, all others to the right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// One more row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it, with an empty line after it.
    pub fn print(&self) {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate();
            let line: Vec<String> = cells
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("{}", line.join("  ").trim_end());
        }
        println!();
    }
}

/// Seconds, or a dash where there are none.
pub fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// How many times as much, or a dash where the smaller one is too small to divide by.
pub fn ratio(large: Option<f64>, small: Option<f64>) -> String {
    match (large, small) {
        (Some(large), Some(small)) if small > 0.0005 => format!("{:.2}x", large / small),
        _ => "-".to_owned(),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / f64::from(1 << 20))
}

/// What a scenario is, in a line.
pub fn title(outcome: &Outcome) -> String {
    let scenario = &outcome.scenario;
    format!(
        "{}: {} services, {} proxies, {} namespaces, {}",
        scenario.name,
        scenario.mesh.services,
        scenario.proxies,
        scenario.mesh.namespaces,
        scenario.protocol.name()
    )
}

/// The steps of one scenario.
pub fn steps(outcome: &Outcome) {
    println!("{}", title(outcome));
    let mut table =
        Table::new(&["", "half s", "all s", "CPU s", "MB sent", "RSS MB", "peak MB", "responses"]);
    for step in &outcome.steps {
        let name = match step.name {
            RECONNECT => format!("{RECONNECT} x{}, each", outcome.scenario.reconnects),
            name => name.to_owned(),
        };
        let responses: Vec<String> =
            step.sent.iter().map(|(kind, count)| format!("{kind} {}", count.responses)).collect();
        table.row(vec![
            name,
            seconds(step.half),
            seconds(step.all),
            seconds(Some(step.cpu)),
            megabytes(step.bytes()),
            step.memory.rss.to_string(),
            step.memory.peak.to_string(),
            responses.join(", "),
        ]);
    }
    table.print();
}

/// A column of the table that shows scenarios beside each other.
type Column = (&'static str, fn(&Outcome) -> Option<f64>);

const COLUMNS: &[Column] = &[
    ("sync CPU s", |o| o.step(FIRST_SYNC).map(|s| s.cpu)),
    ("weight CPU s", |o| o.step("weight").map(|s| s.cpu)),
    ("all s", |o| o.step("weight").and_then(|s| s.all)),
    ("MB", |o| o.step("weight").map(|s| s.bytes() as f64 / f64::from(1 << 20))),
    ("endpoint CPU s", |o| o.step("endpoint").map(|s| s.cpu)),
    ("all s", |o| o.step("endpoint").and_then(|s| s.all)),
    ("comment CPU s", |o| o.step("comment").map(|s| s.cpu)),
    ("RSS MB", |o| o.step("comment").map(|s| s.memory.rss as f64)),
    ("peak MB", |o| o.step("comment").map(|s| s.memory.peak as f64)),
];

/// Scenarios beside each other, and how they compare with one of them.
pub fn side_by_side(outcomes: &[&Outcome], reference: &Outcome) {
    let name = |outcome: &Outcome| {
        format!("{} ({} proxies)", outcome.scenario.name, outcome.scenario.proxies)
    };
    println!("side by side");
    let mut head = vec![""];
    head.extend(COLUMNS.iter().map(|(name, _)| *name));
    let mut table = Table::new(&head);
    for outcome in outcomes {
        let cells = COLUMNS.iter().map(|(_, read)| seconds(read(outcome)));
        table.row([name(outcome)].into_iter().chain(cells).collect());
    }
    table.print();
    println!("the same, as multiples of '{}'", reference.scenario.name);
    let mut table = Table::new(&head);
    for outcome in outcomes {
        let cells = COLUMNS.iter().map(|(_, read)| ratio(read(outcome), read(reference)));
        table.row([name(outcome)].into_iter().chain(cells).collect());
    }
    table.print();
}

/// How each step grows from one scenario to a larger one.
pub fn growth(what: &str, small: &Outcome, large: &Outcome) {
    println!("growth with {what}");
    println!("  from {}", title(small));
    println!("  to   {}", title(large));
    let mut table =
        Table::new(&["", "CPU s", "to", "growth", "all s", "to", "growth", "MB growth"]);
    let bytes = |step: &Step| Some(step.bytes() as f64);
    for before in &small.steps {
        let Some(after) = large.step(before.name) else { continue };
        table.row(vec![
            before.name.to_owned(),
            seconds(Some(before.cpu)),
            seconds(Some(after.cpu)),
            ratio(Some(after.cpu), Some(before.cpu)),
            seconds(before.all),
            seconds(after.all),
            ratio(after.all, before.all),
            ratio(bytes(after), bytes(before)),
        ]);
    }
    table.print();
    let peak = |outcome: &Outcome| outcome.steps.last().map(|step| step.memory.peak as f64);
    let load = |outcome: &Outcome| outcome.step(LOAD).map(|step| step.memory.rss as f64);
    println!(
        "  RSS when loaded grows {}, its peak {}\n",
        ratio(load(large), load(small)),
        ratio(peak(large), peak(small))
    );
}
