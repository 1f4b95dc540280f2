//! Carries out a case under a meter: set-up, region and check of each iteration.
//!
//! Neighbours: `case` says what to do; `turn` has the region; `verify`
//! compares; `template` has the images.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use super::calls::Counted;
use super::case::{Action, Case, Fate, Step, Way};
use super::data::{self, Kind};
use super::ours::Ours;
use super::place;
use super::subject::{Disk, Format, Io, PageCache, Setting, Subject};
use super::template::{Copy, Template, template};
use super::turn::{Part, Queue, Turn, Work, Worker, one_by_one};
use super::verify::{Expected, spoil};
use crate::block::qcow2::{Image, OpenOptions};
use crate::block::sys::copy::drop_cache;
use crate::block::{AlignedBuf, Completion, Op};
use crate::scenario::{Bencher, Ops};
use crate::units::{Bytes, Elements};

/// Addresses of buffers: what any direct I/O takes.
const ALIGN: usize = 4096;

/// After the first iteration, which reads all of it back, each reads back one
/// of so many changes, another one each time.
const SAMPLE: usize = 8;

/// An image that is open.
pub(super) struct Open {
    pub disk: Box<dyn Disk>,
    pub copy: Option<Copy>,
    /// Who wrote last to the places that the case writes to; 0 is nobody.
    pub generation: u32,
}

/// Measures `case` for `subject`.
///
/// # Errors
/// The set-up, an operation, a check or the meter failed.
pub fn run(b: &mut Bencher<'_>, subject: &dyn Subject, case: &Case) -> Result<()> {
    let (operations, bytes) = case.amount();
    b.throughput(Elements(operations));
    if bytes > 0 {
        b.throughput(Bytes(bytes));
    }
    subject.gauges().into_iter().for_each(|gauges| b.gauges(Counted(gauges)));
    let folder = b.scratch_dir()?;
    b.fact("file_system", place::file_system(&folder));
    b.fact("device", place::device(&folder));
    let stage = Stage::new(&folder, subject, case)?;
    stage.facts().into_iter().for_each(|(key, value)| b.fact(key, value));
    let stage = RefCell::new(stage);
    b.iter_ops(
        || stage.borrow_mut().prepare(),
        |mut turn, ops| {
            turn.go(ops);
            turn
        },
        |turn| stage.borrow_mut().check(*turn),
    )
}

/// What is kept between iterations.
pub(super) struct Stage<'a> {
    subject: &'a dyn Subject,
    case: &'a Case,
    before: Vec<Step>,
    before_buffers: Vec<AlignedBuf>,
    steps: Arc<[Step]>,
    /// The one whose bytes each buffer has in the end.
    last: Vec<Step>,
    template: Arc<Template>,
    expected: Expected,
    /// Images that can be used again.
    idle: Vec<Open>,
    /// Buffers of iterations that are over, one for each of the `last`.
    buffers: Vec<Vec<AlignedBuf>>,
    /// Who wrote last.
    generation: u32,
    checked: usize,
}

impl<'a> Stage<'a> {
    pub fn new(folder: &Path, subject: &'a dyn Subject, case: &'a Case) -> Result<Self> {
        let (before, steps) = (case.steps_before(), case.steps());
        let expected = Expected::new(case, &before, &steps);
        Ok(Self {
            subject,
            case,
            template: template(folder, &case.recipe)?,
            before_buffers: new_buffers(&before, Expected::FIRST, &expected)?,
            before,
            steps: steps.into(),
            last: case.last_steps(),
            expected,
            idle: Vec::new(),
            buffers: Vec::new(),
            generation: Expected::FIRST,
            checked: 0,
        })
    }

    /// One iteration, without a meter: the time of its region, in nanoseconds.
    #[cfg(feature = "peers")]
    pub fn once(&mut self) -> Result<u64> {
        self.once_marked(|| ())
    }

    /// The same, with `mark` called before and after the region.
    #[cfg(feature = "peers")]
    pub fn once_marked(&mut self, mark: impl Fn()) -> Result<u64> {
        let (mut turn, mut ops) = (self.prepare()?, Ops::default());
        mark();
        let start = std::time::Instant::now();
        turn.go(&mut ops);
        let took = start.elapsed();
        mark();
        self.check(*turn)?;
        Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }

    /// What the numbers depend on besides the parameters.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("image_bytes", self.template.bytes().to_string())];
        if self.expected.kind() == Kind::Text {
            let plain = self.case.recipe.pieces.count * self.case.recipe.pieces.len;
            let packed = self.template.bytes().max(1);
            facts.push(("compression_ratio", format!("{:.2}", plain as f64 / packed as f64)));
        }
        facts
    }

    /// The image of the next iteration.
    fn open(&mut self) -> Result<Open> {
        if let Some(open) = self.idle.pop() {
            return Ok(open);
        }
        let copy = if self.case.setting.writable { Some(self.template.copy()?) } else { None };
        let path = copy.as_ref().map_or(self.template.path(), Copy::path);
        if self.case.setting.cache == PageCache::Cold {
            self.template.files().try_for_each(make_cold)?;
        }
        let disk = self.subject.open(path, &self.case.setting).context("cannot open the image")?;
        Ok(Open { disk, copy, generation: 0 })
    }

    /// Set-up of an iteration.
    fn prepare(&mut self) -> Result<Box<Turn<'a>>> {
        if self.case.way == Way::Open {
            let path = self.template.path().to_path_buf();
            let work = Work::Open(self.subject, path, self.case.setting);
            return Ok(Box::new(Turn { open: None, work, result: Ok(()) }));
        }
        let mut open = self.open()?;
        if self.case.fate == Fate::Kept && self.case.setting.writable {
            self.generation += 1;
        }
        open.generation = self.generation;
        one_by_one(&mut *open.disk, &self.before, &mut self.before_buffers, &mut Ops::default())
            .context("set-up")?;
        let buffers = self.filled_buffers()?;
        let work = self.work(&mut *open.disk, buffers)?;
        Ok(Box::new(Turn { open: Some(open), work, result: Ok(()) }))
    }

    /// Buffers with what is to be written, and with nothing that could pass for what is to be read.
    fn filled_buffers(&mut self) -> Result<Vec<AlignedBuf>> {
        let Some(mut buffers) = self.buffers.pop() else {
            return new_buffers(&self.last, self.generation, &self.expected);
        };
        for (step, buffer) in self.last.iter().zip(&mut buffers) {
            match step.action {
                Action::Read => spoil(buffer),
                // A copy gets what the last one got.
                Action::Write if self.case.fate == Fate::Kept => {
                    data::fill(self.expected.kind(), buffer, step.offset, self.generation);
                }
                _ => {}
            }
        }
        Ok(buffers)
    }

    fn work(&self, disk: &mut dyn Disk, buffers: Vec<AlignedBuf>) -> Result<Work<'a>> {
        let batch = match self.case.way {
            Way::Each => return Ok(Work::Each(Arc::clone(&self.steps), buffers)),
            Way::Threads(threads) => return self.threads(disk, buffers, threads as usize),
            Way::Batches(size) => size as usize,
            Way::SubmitEach | Way::Drain | Way::Open => self.steps.len(),
        };
        let ops = self.steps.iter().zip(buffers).enumerate();
        let mut ops = ops.map(|(tag, (step, buffer))| step.into_op(tag as u64, buffer));
        let operations = self.steps.len();
        let batches = (0..operations.div_ceil(batch)).map(|_| ops.by_ref().take(batch).collect());
        let mut queue = Queue {
            batches: batches.collect::<Result<_>>()?,
            one_by_one: self.case.way == Way::SubmitEach,
            done: touched(operations),
            operations,
        };
        if self.case.way == Way::Drain {
            disk.prepare_to_settle()?;
            for mut batch in std::mem::take(&mut queue.batches) {
                disk.submit(&mut batch, &mut queue.done)?;
            }
            disk.settle(operations)?;
        }
        Ok(Work::Queue(queue))
    }

    /// Threads that wait, each with an equal part of the steps.
    fn threads(&self, disk: &mut dyn Disk, buffers: Vec<AlignedBuf>, threads: usize) -> Result<Work<'a>> {
        let part = self.steps.len().div_ceil(threads);
        let (each, mut buffers) = (if self.case.reuses { 1 } else { part }, buffers.into_iter());
        let workers = self
            .steps
            .chunks(part)
            .map(|steps| Worker::start(disk.twin()?, steps.to_vec(), buffers.by_ref().take(each).collect()));
        Ok(Work::Threads(workers.collect::<Result<_>>()?))
    }

    /// Looks at what an iteration did, and puts away what can be used again.
    fn check(&mut self, turn: Turn<'_>) -> Result<()> {
        turn.result?;
        let mut open = turn.open.context("no image was opened")?;
        let buffers = match turn.work {
            Work::Each(_, buffers) => buffers,
            Work::Queue(queue) => self.buffers_of(queue)?,
            Work::Threads(workers) => joined(workers)?,
            Work::Open(..) => return self.check_opened(open),
        };
        for (step, buffer) in self.last.iter().zip(&buffers) {
            if step.action == Action::Read {
                self.expected.check(buffer, step.offset, open.generation)?;
            }
        }
        self.buffers.push(buffers);
        self.read_back(&mut open)?;
        self.checked += 1;
        match self.case.fate {
            Fate::Kept => self.idle.push(open),
            Fate::Fresh if self.checked == 1 => self.check_file(open)?,
            Fate::Fresh | Fate::Reopened => open.disk.abandon(),
        }
        Ok(())
    }

    /// The buffers of a queue in the order of the steps, if all of it was completed, and well.
    fn buffers_of(&self, queue: Queue) -> Result<Vec<AlignedBuf>> {
        let (steps, done) = (&self.steps, queue.done);
        ensure!(done.len() == steps.len(), "{} of {} operations were completed", done.len(), steps.len());
        let mut buffers: Vec<Option<AlignedBuf>> = steps.iter().map(|_| None).collect();
        for completion in done {
            let tag = completion.tag() as usize;
            let step = steps.get(tag).with_context(|| format!("a completion with the tag {tag}"))?;
            let moved = completion.result()?;
            ensure!(moved == step.len, "{moved} of {} bytes at {} were moved", step.len, step.offset);
            let buffer =
                completion.into_buffers().into_one().map_or_else(|| AlignedBuf::new(0, ALIGN), Ok)?;
            ensure!(buffers[tag].replace(buffer).is_none(), "operation {tag} was completed twice");
        }
        Ok(buffers.into_iter().flatten().collect())
    }

    fn check_opened(&mut self, mut open: Open) -> Result<()> {
        let mut block = vec![0; data::BLOCK];
        open.disk.read(0, &mut block)?;
        self.expected.check(&block, 0, 0)?;
        open.disk.abandon();
        Ok(())
    }

    /// Reads back what was changed: all of it the first time, then a part.
    fn read_back(&self, open: &mut Open) -> Result<()> {
        let all = self.checked == 0;
        for (index, step) in self.before.iter().chain(self.steps.iter()).enumerate() {
            if all || index % SAMPLE == self.checked % SAMPLE {
                self.expected.read_back(&mut *open.disk, step, open.generation)?;
            }
        }
        Ok(())
    }

    /// Checks the file by itself: all of it is durable, and its structures are sound.
    fn check_file(&self, open: Open) -> Result<()> {
        let Open { mut disk, copy, generation } = open;
        disk.flush().context("flush after the last operation")?;
        drop(disk);
        let Some(copy) = copy else { return Ok(()) };
        if self.case.recipe.format == Format::Qcow2 {
            let image = Image::open(copy.path(), &OpenOptions::new().allow_backing(true))?;
            let report = image.check()?;
            ensure!(report.corruptions == 0, "the image is corrupt: {}", report.messages.join("; "));
        }
        let setting = Setting { io: Io::Sync, cache: PageCache::Warm, writable: false, ..self.case.setting };
        let mut disk = Ours.open(copy.path(), &setting)?;
        for step in self.before.iter().chain(self.steps.iter()) {
            self.expected.read_back(&mut *disk, step, generation).context("in the file")?;
        }
        Ok(())
    }
}

/// A buffer for each step, filled where it writes.
fn new_buffers(steps: &[Step], generation: u32, expected: &Expected) -> Result<Vec<AlignedBuf>> {
    let new = |step: &Step| {
        let moves = matches!(step.action, Action::Read | Action::Write);
        let mut buffer = AlignedBuf::new(if moves { step.len as usize } else { 0 }, ALIGN)?;
        if step.action == Action::Write {
            data::fill(expected.kind(), &mut buffer, step.offset, generation);
        }
        Ok(buffer)
    };
    steps.iter().map(new).collect()
}

/// Room for as many completions in memory that was touched: the first touch of a page is no cost of an engine.
fn touched(operations: usize) -> Vec<Completion> {
    let mut room: Vec<Completion> = (0..operations).map(|_| Op::flush(0).ended(0)).collect();
    room.clear();
    room
}

fn joined(workers: Vec<Worker>) -> Result<Vec<AlignedBuf>> {
    let mut buffers = Vec::new();
    for worker in workers {
        let Part { buffers: part, result } = worker.end()?;
        result?;
        buffers.extend(part);
    }
    Ok(buffers)
}

/// Drops a file from the page cache, and sees that it is gone.
fn make_cold(path: &Path) -> Result<()> {
    let file = std::fs::File::open(path)?;
    let left = drop_cache(&file).with_context(|| format!("{} stays in the page cache", path.display()))?;
    ensure!(left == 0, "{left} pages of {} are still in the page cache", path.display());
    Ok(())
}
