//! One run: classes of writers, each writer with a file of its own, until all data are durable.
//!
//! Owns: the threads and the counts.
//! Does not own: the method of writing (`contenders`), the parameters (`plan`).
//! Invariants: with two classes all writers end when the first has written its part, so that rates cover the time in
//! which the classes compete. A thread that never waits for a writer looks at the dirty bytes.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use afflux_report::Fields;
use serde_json::Value;

use super::plan::{Class, Load, Method, Plan};
use crate::contenders::latencies::Latencies;
use crate::contenders::writer::{Control, Stream, Written, ended};
use crate::contenders::{Contender, KernelMethod, Ours, Sink, Stage};
use crate::host::warm_memory;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The result of a class.
#[derive(Default)]
pub(super) struct OfClass {
    pub(super) bytes: u64,
    /// From the common start until its last writer has written its part.
    pub(super) elapsed: Duration,
    pub(super) latencies: Latencies,
}

impl OfClass {
    pub(super) fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The result of a run.
pub(super) struct Ran {
    pub(super) classes: Vec<OfClass>,
    /// Until all data were durable.
    pub(super) elapsed: Duration,
    pub(super) dirty_bytes_max: u64,
    /// The engine's delays, if the engine ran.
    pub(super) delays: Option<Value>,
}

impl Ran {
    /// The rate of all bytes until they are durable.
    pub(super) fn mb_per_s(&self) -> f64 {
        let bytes: u64 = self.classes.iter().map(|class| class.bytes).sum();
        bytes as f64 / 1e6 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The rate at which writes were accepted, all writers together.
    pub(super) fn accepted_mb_per_s(&self) -> f64 {
        self.classes.iter().map(OfClass::mb_per_s).sum()
    }

    pub(super) fn latencies(&self) -> Latencies {
        let mut all = Latencies::default();
        self.classes.iter().for_each(|class| all.merge(&class.latencies));
        all
    }

    pub(super) fn metrics(&self) -> Fields {
        let all = self.latencies();
        let mut metrics = Fields::new()
            .with("mb_per_s", self.mb_per_s())
            .with("accepted_mb_per_s", self.accepted_mb_per_s())
            .with("write_p50_ms", all.per_mille_ms(500))
            .with("write_p99_ms", all.per_mille_ms(990))
            .with("write_p999_ms", all.per_mille_ms(999))
            .with("write_max_ms", all.max_ms())
            .with("dirty_mb_max", self.dirty_bytes_max as f64 / 1e6);
        if let [first, second] = &self.classes[..] {
            for (name, class) in [("first", first), ("second", second)] {
                metrics.push(format!("{name}_accepted_mb_per_s"), class.mb_per_s());
                metrics.push(format!("{name}_write_p999_ms"), class.latencies.per_mille_ms(999));
            }
        }
        self.delays.iter().for_each(|delays| metrics.push("delays", delays.clone()));
        metrics
    }
}

/// A file, and the class of its writer.
struct FileOfClass {
    class: usize,
    file: Arc<dyn Sink>,
}

pub(super) fn run(plan: &Plan, load: Load, classes: &[Class], directory: &Path, stage: &Stage) -> Result<Ran, String> {
    let own = directory.join("run");
    std::fs::create_dir(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    let result = run_in(plan, load, classes, &own, stage);
    let removed = std::fs::remove_dir_all(&own);
    let ran = result?;
    removed.map_err(|error| format!("{}: {error}", own.display()))?;
    Ok(ran)
}

fn run_in(plan: &Plan, load: Load, classes: &[Class], directory: &Path, stage: &Stage) -> Result<Ran, String> {
    let contenders = contenders(plan, classes, directory, stage)?;
    let contender = |method| contenders.iter().find(|(own, _)| *own == method).map(|(_, contender)| contender);
    let mut files = Vec::new();
    for (class, Class { method, writers }) in classes.iter().enumerate() {
        let contender = contender(*method).ok_or("a class without a contender")?;
        for writer in 0..*writers {
            files.push(FileOfClass { class, file: contender.create(0, &format!("file-{class}-{writer}"))? });
        }
    }
    let competing = load == Load::Competing;
    // Competing writers have no end of their own before the first class has written its part.
    let parts = if competing { 1 } else { files.len() as u64 };
    let stream = Stream::of(plan.block_bytes, plan.bytes / parts);
    let (control, all_there) = (Control::default(), Barrier::new(files.len() + 1));
    let (written, elapsed, dirty_bytes_max) = thread::scope(|scope| {
        let one = |file: &Arc<dyn Sink>| {
            let file = Arc::clone(file);
            let (control, all_there) = (&control, &all_there);
            scope.spawn(move || {
                all_there.wait();
                let written = stream.write(&*file, control).map(|written| (Instant::now(), written));
                if competing || written.is_err() {
                    control.stop.store(true, Ordering::Relaxed);
                }
                file.sync().and(written)
            })
        };
        let threads: Vec<_> = files.iter().map(|file| one(&file.file)).collect();
        all_there.wait();
        let (began, mut most) = (Instant::now(), 0);
        while threads.iter().any(|thread| !thread.is_finished()) {
            most = most.max(contenders.iter().map(|(_, contender)| contender.dirty_bytes(0)).sum());
            thread::sleep(LOOK_EVERY);
        }
        let written = threads.into_iter().map(ended);
        let since = |(ended, written): (Instant, Written)| (ended.saturating_duration_since(began), written);
        let written = written.map(|written| written.map(since));
        (written.collect::<Result<Vec<_>, String>>(), began.elapsed(), most)
    });
    let mut found: Vec<OfClass> = classes.iter().map(|_| OfClass::default()).collect();
    for (file, (ended, written)) in files.iter().zip(written?) {
        let class = &mut found[file.class];
        class.bytes += written.bytes;
        class.elapsed = class.elapsed.max(ended);
        class.latencies.merge(&written.all);
    }
    let delays = contenders.iter().find_map(|(_, contender)| contender.delays());
    Ok(Ran { classes: found, elapsed, dirty_bytes_max, delays })
}

type Contenders = Vec<(Method, Box<dyn Contender>)>;

/// One contender for each method; two classes with the same method share one.
fn contenders(plan: &Plan, classes: &[Class], directory: &Path, stage: &Stage) -> Result<Contenders, String> {
    let mut contenders: Contenders = Vec::new();
    for Class { method, .. } in classes {
        if contenders.iter().any(|(own, _)| own == method) {
            continue;
        }
        let contender: Box<dyn Contender> = match method {
            Method::Ours(at) => Box::new(Ours::new(&plan.engines[*at], &[directory])?),
            Method::Kernel(kernel) => {
                if *kernel != KernelMethod::Direct {
                    warm_memory(plan.bytes);
                }
                Box::new(stage.kernel(*kernel, &[directory]))
            }
        };
        contenders.push((*method, contender));
    }
    Ok(contenders)
}

#[cfg(test)]
mod tests;
