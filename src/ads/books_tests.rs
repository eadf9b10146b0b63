//! What a connection costs: the entries in its books beyond what is shared.

use super::super::testing::{Client, NOTHING};

/// Entries in the books, beyond what is shared.
fn weight(client: &Client) -> usize {
    client.stream.subscriptions.values().map(|s| s.books.weight()).sum()
}

/// `n` clusters with their endpoints, one of which has this content.
fn world(n: usize, content: u8) -> String {
    let all = |content: u8| -> String {
        (0..n).map(|i| format!(" c{i:03}={}", if i == 7 { content } else { 1 })).collect()
    };
    format!("cds{}; eds{}; lds l=1; rds r=1", all(1), all(content))
}

fn names(n: usize, sign: &str) -> String {
    (0..n).map(|i| format!(" {sign}c{i:03}")).collect()
}

#[test]
fn a_client_that_has_what_there_is_costs_nothing() {
    let mut delta = Client::delta(&world(100, 1));
    delta.change("cds", "");
    delta.change("eds", &names(100, "+"));
    delta.change("lds", "");
    delta.change("rds", "+r");
    let mut sotw = Client::sotw(&world(100, 1));
    sotw.ask("cds", "");
    sotw.ask("eds", &names(100, ""));
    sotw.ask("lds", "");
    sotw.ask("rds", "r");
    for mut client in [delta, sotw] {
        assert_eq!(weight(&client), 0);
        assert_eq!(client.push(&world(100, 2)), ["eds c007=2"]);
        assert_eq!(weight(&client), 0);
    }
}

#[test]
fn a_client_that_asks_for_all_but_a_few_or_for_a_few_costs_those() {
    for (asked, kept) in [(97, 3), (4, 4)] {
        let mut client = Client::delta(&world(100, 1));
        client.change("eds", &names(asked, "+"));
        assert_eq!(weight(&client), kept);
        let mut client = Client::sotw(&world(100, 1));
        client.ask("eds", &names(asked, ""));
        assert_eq!(weight(&client), kept);
    }
}

#[test]
fn a_client_that_reconnects_costs_as_much_as_one_that_is_new() {
    let mut client = Client::delta(&world(100, 2));
    let has: String = (0..100).map(|i| format!(" c{i:03}@1")).collect();
    assert_eq!(client.change("cds", &has), ["cds"]);
    let changes = names(100, "+") + &has;
    assert_eq!(client.change("eds", &changes).len(), 1);
    assert_eq!(weight(&client), 0);
    assert_eq!(client.push(&world(100, 2)), NOTHING);
}

#[test]
fn a_new_name_costs_an_entry_until_it_is_asked_for() {
    let mut client = Client::delta(&world(100, 1));
    client.change("cds", "");
    client.change("eds", &names(100, "+"));
    client.push(&world(101, 1));
    assert_eq!(weight(&client), 1);
    client.change("eds", "+c100");
    assert_eq!(weight(&client), 0);
}
