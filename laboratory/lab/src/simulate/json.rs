//! A run as one JSON object.
//!
//! Owns: names, units (in the names) and nesting.
//! Does not own: the figures.
//! Invariants: one object on one line; latencies are microseconds; the trace hash is text, since it has more digits
//! than the numbers of many JSON readers.

#[cfg(test)]
mod tests;

use afflux_engine::{Delay, DelayTimes, WaitTimes};
use afflux_workloads::simulation::{
    DeviceOutcome, EngineOutcome, JobOutcome, LatencyOutcome, Loss, LossCause, OperationOutcome, Outcome, SlowestCall,
    Unwritten,
};
use serde_json::{Map, Value, json};

use super::curves::seconds;
use super::ended_run::Run;

pub(super) fn object(run: &Run) -> Value {
    let figures = &run.figures;
    let mut engine = engine(&figures.engine);
    engine["settle_s"] = seconds(figures.settle_ns).into();
    engine["at_risk_bytes_max"] = figures.at_risk_bytes_max.into();
    engine["devices"] = figures.devices.iter().map(|it| device(it, figures.virtual_ns)).collect();
    json!({
        "source": "simulated",
        "policy": run.policy,
        "seed": figures.seed,
        "trace_hash": format!("{:016x}", figures.trace_hash),
        "virtual_s": seconds(figures.virtual_ns),
        "cut": figures.cut,
        "real_s": run.real.as_secs_f64(),
        "jobs": figures.jobs.iter().map(job).collect::<Vec<_>>(),
        "engine": engine,
        "unwritten": figures.unwritten.iter().map(unwritten).collect::<Vec<_>>(),
        "loss": figures.loss.as_ref().map(loss),
        "shifted": run.shifted.iter().map(shifted).collect::<Vec<_>>(),
    })
}

/// A run with shifted starts.
fn shifted(figures: &Outcome) -> Value {
    json!({
        "trace_hash": format!("{:016x}", figures.trace_hash),
        "virtual_s": seconds(figures.virtual_ns),
        "settle_s": seconds(figures.settle_ns),
        "jobs": figures.jobs.iter().map(job).collect::<Vec<_>>(),
    })
}

fn unwritten(left: &Unwritten) -> Value {
    json!({"what": left.what, "why": left.why, "dirty_bytes": left.dirty_bytes})
}

fn loss(loss: &Loss) -> Value {
    let cause = match loss.cause {
        LossCause::PowerLoss => "power-loss",
        LossCause::Kill => "kill",
    };
    let files: Vec<Value> = loss.files.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes})).collect();
    json!({
        "cause": cause,
        "at_s": seconds(loss.at_ns),
        "accepted_bytes": loss.accepted_bytes,
        "lost_bytes": loss.lost_bytes,
        "synced_lost_bytes": 0,
        "files": files,
    })
}

fn job(job: &JobOutcome) -> Value {
    let errors: Vec<Value> = job.errors.iter().map(|(what, count)| json!({"what": what, "count": count})).collect();
    json!({
        "name": job.name,
        "device": job.device,
        "clones": job.clones,
        "elapsed_s": seconds(job.elapsed_ns),
        "ended_s": seconds(job.ended_ns),
        "read": operation(&job.read),
        "write": operation(&job.write),
        "trim": operation(&job.trim),
        "sync": operation(&job.sync),
        "closing_sync": operation(&job.closing_sync),
        "errors": errors,
    })
}

fn operation(operation: &OperationOutcome) -> Value {
    let each = |count: u64| {
        if operation.elapsed_ns > 0 { count as f64 / seconds(operation.elapsed_ns) } else { 0.0 }
    };
    json!({
        "bytes": operation.bytes,
        "ops": operation.ops,
        "elapsed_s": seconds(operation.elapsed_ns),
        "mb_per_s": each(operation.bytes) / 1e6,
        "iops": each(operation.ops),
        "latency_us": latency(&operation.latency),
        "slowest": operation.slowest.as_ref().map(slowest),
    })
}

/// The slowest call: its largest cause, and each cause with its time.
fn slowest(call: &SlowestCall) -> Value {
    let us = |ns: u64| ns as f64 / 1e3;
    let waits: Map<String, Value> =
        call.causes().into_iter().map(|(cause, ns)| (cause.name().to_owned(), us(ns).into())).collect();
    json!({"at_s": seconds(call.at_ns), "us": us(call.took_ns), "cause": call.cause().0.name(), "waits_us": waits})
}

/// `min`, `mean`, `max`, and a name such as `p99_9` for each percentile.
fn latency(latency: &LatencyOutcome) -> Value {
    let us = |ns: u64| Value::from(ns as f64 / 1e3);
    let mut fields = Map::new();
    for (name, ns) in [("min", latency.min_ns), ("mean", latency.mean_ns), ("max", latency.max_ns)] {
        fields.insert(name.to_owned(), us(ns));
    }
    for (percentile, ns) in &latency.percentiles_ns {
        fields.insert(format!("p{percentile}").replace('.', "_"), us(*ns));
    }
    fields.into()
}

fn engine(engine: &EngineOutcome) -> Value {
    let pauses = engine.pauses.iter();
    let pause = |(cause, count, ns): &(String, u64, u64)| json!({"cause": cause, "count": count, "s": seconds(*ns)});
    let counters: Map<String, Value> =
        engine.counters.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect();
    json!({
        "cache_bytes": engine.cache_bytes,
        "cpus": engine.cpus,
        "cpu_busy_s": seconds(engine.cpu_busy_ns),
        "callers": engine.callers,
        "pauses": pauses.map(pause).collect::<Vec<_>>(),
        "counters": counters,
    })
}

/// A client's waits, by cause.
fn delays(who: Option<&String>, times: &DelayTimes) -> Value {
    let mut fields = Map::new();
    who.map(|who| fields.insert("who".to_owned(), Value::from(who.as_str())));
    for delay in Delay::ALL {
        let WaitTimes { count, ns, p99_ns, max_ns, .. } = times.of(delay);
        let of = json!({"count": count, "ns": ns, "p99_ns": p99_ns, "max_ns": max_ns});
        fields.insert(delay.name().to_owned(), of);
    }
    fields.into()
}

fn device(device: &DeviceOutcome, virtual_ns: u64) -> Value {
    let requests = device.requests.0 + device.requests.1;
    let bytes = device.bytes.0 + device.bytes.1;
    let sample = |sample: &afflux_workloads::simulation::DeviceSample| {
        json!({
            "at_s": seconds(sample.at_ns),
            "dirty_bytes": sample.dirty_bytes,
            "writeback_bytes": sample.writeback_bytes,
            "dirty_limit_bytes": sample.dirty_limit_bytes,
            "queue_depth": sample.queue_depth,
            "read_bytes": sample.moved_bytes.0,
            "written_bytes": sample.moved_bytes.1,
            "accepted_bytes": sample.accepted_bytes,
            "busy_per_mille": sample.busy_per_mille,
        })
    };
    json!({
        "name": device.name,
        "model": device.model,
        "read_bytes": device.bytes.0,
        "written_bytes": device.bytes.1,
        "read_requests": device.requests.0,
        "write_requests": device.requests.1,
        "request_bytes_mean": if requests > 0 { bytes as f64 / requests as f64 } else { 0.0 },
        "busy_share": if virtual_ns > 0 { device.busy_ns as f64 / virtual_ns as f64 } else { 0.0 },
        "seeks": device.seeks,
        "file_switches": device.file_switches,
        "delays": device.delays.iter().map(|one| delays(Some(&one.who), &one.times)).collect::<Vec<_>>(),
        "others": device.others,
        "delays_of_others": delays(None, &device.delays_of_others),
        "samples": device.samples.iter().map(sample).collect::<Vec<_>>(),
    })
}
