//! `afflux clients`: the clients of version 4 of a running server, and what each has open and locked.
//!
//! Owns: asking, the table and the lines that people read, the object of JSON.
//! Does not own: the figures (the server), the end of a client (`change`).
//! Invariants: JSON has all figures. A name that a client has chosen controls no terminal.

#[cfg(test)]
mod tests;

use afflux_report::failure::Outcome;
use afflux_report::{output, units};
use serde::Serialize;

use crate::args;
use crate::control::ControlClient;
use crate::control::messages::{ClientGauges, ClientStateGauges, ControlReply, ControlRequest, OpenOrLock};
use crate::watch::{self, Watch};

/// The columns of the table: title, and whether it is a figure.
const COLUMNS: [(&str, bool); 12] = [
    ("number", true),
    ("client", false),
    ("user", true),
    ("version", false),
    ("status", false),
    ("lease", true),
    ("open", true),
    ("deny", true),
    ("locks", true),
    ("wait", true),
    ("slots", true),
    ("name", false),
];

/// Between two columns.
const GAP: &str = "  ";

#[derive(Debug, Serialize)]
struct Clients {
    /// Clients of an earlier server that others wait for.
    missing: u64,
    clients: Vec<Client>,
}

#[derive(Debug, Serialize)]
struct Client {
    #[serde(flatten)]
    gauges: ClientGauges,
    /// Its opens and locks, if the caller asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<Vec<ClientStateGauges>>,
}

pub(crate) fn run(args: &args::ClientsArgs) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    let watch = Watch { again: args.watch, redraws: !args.json, pause: watch::EVERY };
    watch.show(|| {
        let clients = ask(&mut client, args.client.clone())?;
        if args.json { watch::json_line(&clients) } else { Ok(text(&clients)) }
    })
}

fn ask(client: &mut ControlClient, named: Option<String>) -> Outcome<Clients> {
    let has_states = named.is_some();
    client.ask(&ControlRequest::Clients { client: named })?;
    let mut clients = Vec::new();
    loop {
        match client.reply()? {
            ControlReply::Clients { clients: more } => {
                let states = || has_states.then(Vec::new);
                clients.extend(more.into_iter().map(|gauges| Client { gauges, states: states() }));
            }
            ControlReply::ClientStates { states: more } => {
                let of_last = clients.last_mut().and_then(|client: &mut Client| client.states.as_mut());
                of_last.into_iter().for_each(|states| states.extend(more.iter().cloned()));
            }
            ControlReply::ClientsEnded { missing } => return Ok(Clients { missing, clients }),
            other => return Err(client.unexpected(&other)),
        }
    }
}

/// The table, then the opens and locks of each client that was asked for.
fn text(Clients { missing, clients }: &Clients) -> String {
    let mut text = String::new();
    if *missing > 0 {
        let clients = units::plural(*missing, "client");
        text.push_str(&format!("waiting for {clients} of the server before, which may ask for their locks again\n"));
    }
    if clients.is_empty() {
        return text + "no client of version 4\n";
    }
    let rows = clients.iter().map(|client| row(&client.gauges)).collect::<Vec<_>>();
    text.push_str(&table(&rows));
    for Client { gauges, states } in clients {
        let Some(states) = states else { continue };
        let names = certificates(gauges).into_iter();
        let lines = names.chain(states.iter().map(state_line)).map(|line| format!("  {line}\n"));
        text.push_str(&format!("\nclient {}\n", gauges.number));
        text.extend(lines);
    }
    text
}

fn row(client: &ClientGauges) -> [String; 12] {
    let count = |number: u64| if number == 0 { "-".to_owned() } else { units::count(number) };
    let seconds = client.lease_left_ns.div_ceil(1_000_000_000);
    let slots = format!("{} of {}", units::count(client.slots_in_use), units::count(client.slots));
    [
        client.number.to_string(),
        client.address.as_ref().map_or_else(|| "this host".to_owned(), output::shown),
        client.user.map_or_else(|| "-".to_owned(), |user| user.to_string()),
        client.version.as_ref().map_or_else(|| "-".to_owned(), output::shown),
        output::shown(&client.status),
        format!("{seconds} s"),
        count(client.opens),
        count(client.denying),
        count(client.ranges),
        count(client.waiting),
        if client.sessions == 0 { "-".to_owned() } else { slots },
        output::shown(&client.name),
    ]
}

fn table(rows: &[[String; 12]]) -> String {
    let titles = COLUMNS.map(|(title, _)| title.to_owned());
    let all = || std::iter::once(&titles).chain(rows);
    let widths: [usize; 12] =
        std::array::from_fn(|at| all().map(|row| row[at].chars().count()).max().unwrap_or_default());
    let line = |row: &[String; 12]| {
        let cells = row.iter().zip(COLUMNS).zip(widths).map(|((cell, (_, is_figure)), width)| match is_figure {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        format!("{}\n", cells.collect::<Vec<_>>().join(GAP).trim_end())
    };
    all().map(line).collect()
}

/// The names that a client's machine has proved, and what is wrong with the connection to it.
fn certificates(client: &ClientGauges) -> Option<String> {
    let names: Vec<String> = client.certificates.iter().map(output::shown).collect();
    let names = (!names.is_empty()).then(|| format!("certificate of {}", names.join(", ")));
    let down = client.is_back_channel_down.then(|| "no connection carries calls to it".to_owned());
    let parts: Vec<String> = names.into_iter().chain(down).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn state_line(ClientStateGauges { file, owner, what }: &ClientStateGauges) -> String {
    let (file, owner) = (output::shown(file), output::shown(owner));
    let by = if owner.is_empty() { String::new() } else { format!("  by {owner}") };
    match what {
        OpenOrLock::Open { access, deny } if deny == "-" => {
            format!("open {}  {file}{by}", output::shown(access))
        }
        OpenOrLock::Open { access, deny } => {
            format!("open {}, denies {}  {file}{by}", output::shown(access), output::shown(deny))
        }
        OpenOrLock::Lock { first, last, is_exclusive } => {
            let kind = if *is_exclusive { "exclusive" } else { "shared" };
            let bytes = match last {
                &u64::MAX if *first == 0 => "the whole file".to_owned(),
                &u64::MAX => format!("bytes from {first} on"),
                last => format!("bytes {first} to {last}"),
            };
            format!("{kind} lock of {bytes}  {file}{by}")
        }
        OpenOrLock::Delegation { is_revoked: true, .. } => format!("delegation that was revoked  {file}"),
        OpenOrLock::Delegation { is_recalled: true, .. } => format!("delegation that is recalled  {file}"),
        OpenOrLock::Delegation { .. } => format!("delegation  {file}"),
        OpenOrLock::Others { count } => format!("and {} more", units::count(*count)),
    }
}
