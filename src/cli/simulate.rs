//! `simulate`: execution traces and configurations of the reference simulator, run as it runs them.

use itertools::Itertools as _;
use serde_json::{Value, json};

use super::args::{BACKENDS, PATHS, SimulateArgs};
use super::exit::Exit;
use super::render;
use crate::astra_sim::{Files, Input, Options, read};
use crate::engine::event_driven::{Activity, Ask, Rank};
use crate::input::{Diagnostic, Remarks, Severity};
use crate::run::deadlock::{Knot, operation};
use crate::run::simulate::{Answer, Impossible, nanoseconds, simulate as run};
use crate::run::timeline;
use crate::system::machine::{Congestion, Machine};
use crate::system::rules::{Quirk, Rules};
use crate::units::{Time, Unit, count, human, real};
use crate::workload::trace::Fault;
use crate::workload::trace::fault::ranks_text;

/// How many lines of ranks, of faults, and of operations that wait are shown.
const LINES: usize = 24;

/// Reads, checks, simulates and tells.
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let (files, options) = (files(args), options(args));
    let mut remarks = ignored(args);
    let Input { machine, trace, remarks: read } = match read(&files, &options) {
        Ok(input) => input,
        Err(problems) => {
            render::remarks(&problems);
            return Ok(wrong(problems.errors()));
        }
    };
    remarks.append(read);
    let ask = Ask { path: args.path, keeps_spans: args.timeline.is_some(), limit: None };
    let answer = match run(&machine, &trace, ask, args.json) {
        Ok(answer) => answer,
        Err(Impossible::Faults(faults)) => {
            say_faults(&mut remarks, &faults);
            render::remarks(&remarks);
            return Ok(wrong(faults.iter().filter(|fault| fault.is_fatal()).count()));
        }
        Err(Impossible::Refused(refused)) => {
            remarks.say(Diagnostic::error(refused.to_string()));
            render::remarks(&remarks);
            return Ok(wrong(1));
        }
    };
    say_faults(&mut remarks, &answer.faults);
    for message in answer.too_fast() {
        let help = "kept, as ASTRA-sim says the same: without congestion, messages do not share a link";
        remarks.say(Diagnostic::caution(message).help(help));
    }
    if let Some(path) = &args.timeline {
        timeline::write(path, &trace, &answer.outcome)?;
    }
    render::remarks(&remarks);
    if args.json {
        anstream::println!("{}", object(&machine, &answer, &remarks, args.rules));
    } else {
        tables(&machine, &answer, args.rules);
    }
    if answer.outcome.stuck.is_empty() {
        return Ok(Exit::Complete);
    }
    deadlock(&answer);
    Ok(Exit::Usage)
}

/// Which files are to be read.
fn files(args: &SimulateArgs) -> Files {
    let groups = Some(&args.comm_group_configuration).filter(|path| path.as_os_str() != "empty");
    Files {
        workload: args.workload_configuration.clone(),
        system: args.system_configuration.clone(),
        network: args.network_configuration.clone(),
        memory: args.remote_memory_configuration.clone(),
        groups: groups.cloned(),
    }
}

/// What the options say.
fn options(args: &SimulateArgs) -> Options {
    Options {
        queues_per_dim: args.num_queues_per_dim,
        injection_scale: args.injection_scale,
        rendezvous: args.rendezvous_protocol,
        congestion: args.backend,
        heeds_scheduling_keys: false,
        rules: rules(args),
    }
}

/// The rules that are asked for: a set that has a name, with some quirks, without others.
fn rules(args: &SimulateArgs) -> Rules {
    let heeded = args.heed_scheduling_keys.then_some(Quirk::SchedulingKeysIgnored);
    let rules = args.with.iter().copied().fold(args.rules, Rules::with);
    args.without.iter().copied().chain(heeded).fold(rules, Rules::without)
}

/// The name of a set of rules.
fn name(rules: Rules) -> &'static str {
    Rules::NAMES[usize::from(rules == Rules::ASTRA_SIM)]
}

/// Rules in words: a set that has a name, and in which quirks they are other.
fn rules_text(named: Rules, rules: Rules) -> String {
    let names = |more: Rules, less: Rules| more.quirks().filter(|&it| !less.has(it)).map(Quirk::name).join(" and ");
    let part = |word: &str, names: String| if names.is_empty() { names } else { format!(" {word} {names}") };
    [name(named).to_owned(), part("with", names(rules, named)), part("without", names(named, rules))].concat()
}

/// Options that were given and have no effect.
fn ignored(args: &SimulateArgs) -> Remarks {
    let given = [
        (args.comm_scale.is_some(), "`--comm-scale` has no effect, here as in ASTRA-sim"),
        (args.compute_scale.is_some(), "`--compute-scale` has no effect, here as in ASTRA-sim"),
        (args.logging_configuration.is_some(), "`--logging-configuration` has no effect: there is no log"),
        (args.logging_folder.is_some(), "`--logging-folder` has no effect: there is no log"),
    ];
    let mut remarks = Remarks::default();
    for (_, message) in given.into_iter().filter(|given| given.0) {
        remarks.say(Diagnostic::caution(message));
    }
    remarks
}

/// Says how many errors kept the simulation from being run.
fn wrong(errors: usize) -> Exit {
    let mistakes = if errors == 1 { "mistake" } else { "mistakes" };
    anstream::eprintln!("{} {mistakes}; nothing was simulated", count(errors as u64));
    Exit::Usage
}

/// What is wrong with the trace: at most a screenful of it, the rest counted.
fn say_faults(remarks: &mut Remarks, faults: &[Fault]) {
    for fatal in [true, false] {
        let of_kind = || faults.iter().filter(|fault| fault.is_fatal() == fatal);
        let make = |message: String| if fatal { Diagnostic::error(message) } else { Diagnostic::caution(message) };
        for fault in of_kind().take(LINES / 2) {
            let diagnostic = make(fault.to_string());
            remarks.say(match fault.help() {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            });
        }
        let more = of_kind().count().saturating_sub(LINES / 2);
        if more > 0 {
            remarks.say(make(format!("{} more of this kind", count(more as u64))));
        }
    }
}

/// A time in nanoseconds.
fn time(time: Option<Time>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{} ns", nanoseconds(time)))
}

/// A time in nanoseconds for programs: whole if it is.
fn number(time: Time) -> Value {
    match time.as_picoseconds() {
        picoseconds if picoseconds.is_multiple_of(1000) => json!(picoseconds / 1000),
        picoseconds => json!(real(picoseconds) / 1000.0),
    }
}

/// The answer as tables.
fn tables(machine: &Machine, answer: &Answer, named: Rules) {
    let rules = rules_text(named, machine.rules);
    let outcome = &answer.outcome;
    let end = match answer.finish() {
        Some(end) => format!("end at {} ns ({})", nanoseconds(end), human(end.as_seconds(), Unit::SECOND)),
        None => "no end".to_owned(),
    };
    let backend = BACKENDS[usize::from(machine.congestion == Congestion::Aware)];
    let (ranks, messages) = (count(outcome.ranks.len() as u64), count(outcome.messages));
    let path = if outcome.asymmetry.is_none() { "symmetric path" } else { "message by message" };
    anstream::println!("{ranks} ranks, {messages} messages simulated, {end}; rules {rules}, {backend}, {path}\n");
    of_ranks(answer);
    anstream::println!("  exposed: finish less compute, as ASTRA-sim counts it; waiting and memory are in it\n");
    of_dimensions(machine, answer);
}

/// The table of ranks: neighbours that are equal in one line.
fn of_ranks(answer: &Answer) {
    let ranks = &answer.outcome.ranks;
    let has = |activity: Activity| ranks.iter().any(|rank| rank.busy(activity) > Time::ZERO);
    let more: Vec<(&str, Activity)> = [("memory", Activity::Memory), ("host", Activity::Host)]
        .into_iter()
        .filter(|(_, activity)| has(*activity))
        .collect();
    let cells = |rank: usize| {
        let of = &ranks[rank];
        let times = [of.finish, Some(of.computed), Some(of.busy(Activity::Communication)), of.exposed()];
        let more = more.iter().map(|(_, activity)| Some(of.busy(*activity)));
        times.into_iter().chain(more).chain([answer.idle[rank]]).map(time).collect_vec()
    };
    let mut rows: Vec<(usize, usize, Vec<String>)> = Vec::new();
    for rank in 0..ranks.len() {
        let cells = cells(rank);
        match rows.last_mut() {
            Some((_, last, same)) if *same == cells => *last = rank,
            _ => rows.push((rank, rank, cells)),
        }
    }
    let header = ["rank", "finish", "compute", "communication", "exposed"].into_iter();
    let header = header.chain(more.iter().map(|more| more.0)).chain(["idle"]).map(str::to_owned).collect_vec();
    let line = |(first, last, cells): &(usize, usize, Vec<String>)| {
        let ranks = if first == last { first.to_string() } else { format!("{first}..{last}") };
        std::iter::once(ranks).chain(cells.iter().cloned()).collect_vec()
    };
    anstream::println!("{}", render::table(&header, &rows.iter().take(LINES).map(line).collect_vec()));
    if rows.len() > LINES {
        let slowest = ranks.iter().enumerate().max_by_key(|(_, rank)| rank.finish.unwrap_or(Time::MAX));
        let slowest = slowest.map_or(0, |slowest| slowest.0);
        let more = count((rows.len() - LINES) as u64);
        anstream::println!("  ... {more} more lines (--json has all); the last to end is rank {slowest}");
    }
}

/// The table of dimensions.
fn of_dimensions(machine: &Machine, answer: &Answer) {
    let header = [
        "dimension",
        "block",
        "size",
        "links",
        "a link's bandwidth",
        "busiest rank",
        "sends",
        "all send",
        "utilisation",
    ];
    let rows = machine.dimensions.iter().zip(&answer.dimensions).enumerate().map(|(k, (dimension, carried))| {
        let share = carried.utilisation.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        vec![
            (k + 1).to_string(),
            dimension.block.name().to_owned(),
            dimension.size.to_string(),
            carried.links.to_string(),
            human(dimension.bandwidth * 1e9, Unit::BANDWIDTH),
            if carried.sent > 0 { carried.busiest_rank.to_string() } else { "-".to_owned() },
            format!("{} B", count(carried.sent)),
            format!("{} B", count(carried.sent_by_all)),
            share,
        ]
    });
    anstream::println!("{}", render::table(&header.map(str::to_owned), &rows.collect_vec()));
    let busiest = answer.busiest().filter(|_| answer.dimensions.len() > 1);
    let busiest = busiest.map_or_else(String::new, |k| format!("; the busiest dimension is {}", k + 1));
    anstream::println!("  utilisation: of all links of the busiest rank, until the end{busiest}");
}

/// What waits for ever, and for what: at most a screenful, the rest counted.
fn deadlock(answer: &Answer) {
    let ended = answer.outcome.ranks.iter().filter(|rank| rank.finish.is_some()).count();
    let ranks = answer.outcome.ranks.len();
    let (never, all) = (count((ranks - ended) as u64), count(ranks as u64));
    anstream::eprintln!("\nerror: a deadlock: {never} of {all} ranks never come to their end");
    // What has not begun waits for what has, or for a place that it holds.
    let roots = answer.knots.iter().filter(|knot| knot.has_begun).count();
    let shown = if roots > 0 { roots.min(LINES) } else { answer.knots.len().min(LINES) };
    for knot in answer.knots.iter().take(shown) {
        let Knot { ranks, waits_for, .. } = knot;
        anstream::eprintln!("  {}: {} waits for {waits_for}", ranks_text(ranks), operation(knot.operation, &knot.name));
    }
    if let Some(help) = answer.help() {
        anstream::eprintln!("  help: {help}");
    }
    let more = answer.knots.iter().skip(shown).map(|knot| knot.ranks.len() as u64).sum::<u64>();
    if more > 0 {
        anstream::eprintln!("  and {} more operations, most of which wait for these (--json lists all)", count(more));
    }
}

/// The answer as one JSON object.
fn object(machine: &Machine, answer: &Answer, remarks: &Remarks, named: Rules) -> Value {
    let rank = |(k, rank): (usize, &Rank)| {
        json!({
            "rank": k,
            "finish_ns": rank.finish.map(number),
            "compute_ns": number(rank.computed),
            "communication_ns": number(rank.busy(Activity::Communication)),
            "exposed_communication_ns": rank.exposed().map(number),
            "memory_ns": number(rank.busy(Activity::Memory)),
            "host_ns": number(rank.busy(Activity::Host)),
            "idle_ns": answer.idle[k].map(number),
        })
    };
    let busiest = answer.busiest();
    let dimensions = machine.dimensions.iter().zip(&answer.dimensions).enumerate().map(|(k, (dimension, carried))| {
        json!({
            "dimension": k + 1,
            "block": dimension.block.name(),
            "size": dimension.size,
            "links_per_npu": carried.links,
            "link_bandwidth_bytes_per_s": dimension.bandwidth * 1e9,
            "busiest_rank": (carried.sent > 0).then_some(carried.busiest_rank),
            "busiest_rank_sent_bytes": carried.sent,
            "sent_bytes": carried.sent_by_all,
            "wire_ns": carried.wire,
            "utilisation_ratio": carried.utilisation,
            "is_busiest": busiest == Some(k),
        })
    });
    let remark = |severity: Severity| {
        let of_kind = remarks.found.iter().filter(move |diagnostic| diagnostic.severity == severity);
        of_kind.map(|diagnostic| {
            let place = diagnostic.place.and_then(|place| Some((place, remarks.text(place)?)));
            json!({
                "message": diagnostic.message,
                "help": diagnostic.help,
                "file": place.map(|(_, text)| text.name.as_str()),
                "line": place.map(|(place, _)| place.line),
                "column": place.map(|(place, _)| place.column),
            })
        })
    };
    let stuck = answer.knots.iter().flat_map(|knot| {
        knot.ranks.iter().map(move |rank| {
            json!({
                "rank": rank,
                "operation": knot.operation,
                "name": knot.name,
                "has_begun": knot.has_begun,
                "waits_for": knot.waits_for,
            })
        })
    });
    json!({
        "ranks": answer.outcome.ranks.iter().enumerate().map(rank).collect_vec(),
        "finish_ns": answer.finish().map(number),
        "dimensions": dimensions.collect_vec(),
        "messages": answer.outcome.messages,
        "rules": name(named),
        "quirks": machine.rules.quirks().map(Quirk::name).collect_vec(),
        "path": if answer.outcome.asymmetry.is_none() { PATHS[1] } else { PATHS[2] },
        "asymmetry": answer.outcome.asymmetry,
        "cautions": remark(Severity::Caution).collect_vec(),
        "errors": remark(Severity::Error).collect_vec(),
        "stuck": stuck.collect_vec(),
    })
}
