//! Power cuts: the workload is cut off at every storage call, with what was
//! not synced lost, torn or reordered by sectors. Reopened, flushed data is
//! there, snapshots are intact, and a check finds leaks at the most. qemu
//! judges a sample; `WALLGRIND_CRASH_QEMU=1` makes it judge all.
//!
//! Neighbours: `qcow2/scene` has the workload, `wallgrind::block::mem` the cuts.

#[path = "qcow2/qemu.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod qemu;
#[path = "qcow2/scene.rs"]
mod scene;

use libtest_mimic::{Arguments, Failed, Trial};
use scene::{STEPS, Track};
use wallgrind::block::MemStorage;
use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::mem::crash::Crash;
use wallgrind::block::qcow2::{CreateOptions, Image, OpenOptions, Parts};

/// Images that are tried for each cut.
const WAYS: usize = 9;

type Change = fn(&mut CreateOptions);

const IMAGES: &[(&str, Change)] = &[
    ("plain_4k", |_| {}),
    ("v2_4k", |o| o.version = 2),
    ("clusters_512_w64", |o| (o.cluster_size, o.refcount_bits) = (512, 64)),
    ("subclusters_16k", |o| (o.cluster_size, o.extended_l2) = (16384, true)),
    ("zstd_4k_w8", |o| {
        (o.refcount_bits, o.compression) = (8, wallgrind::block::qcow2::Compression::Zstd);
    }),
];

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    let missing = qemu::missing();
    let mut trials: Vec<Trial> = IMAGES
        .iter()
        .map(|&(name, change)| {
            Trial::test(format!("cut_everywhere::{name}"), move || cut_everywhere(name, change, false))
        })
        .collect();
    trials.extend(IMAGES.iter().map(|&(name, change)| {
        let name = match missing {
            Some(reason) => format!("cut_and_ask_qemu::{name} ({reason})"),
            None => format!("cut_and_ask_qemu::{name}"),
        };
        Trial::test(name.clone(), move || cut_everywhere(&name, change, true))
            .with_ignored_flag(missing.is_some())
    }));
    trials.push(qemu::without_tools(|name| name.starts_with("cut_and_ask_qemu::")));
    libtest_mimic::run(&args, trials).exit_code()
}

/// Runs the workload once for each call that it makes, and once to the end.
fn cut_everywhere(name: &str, change: Change, ask_qemu: bool) -> Result<(), Failed> {
    let every = if std::env::var_os("WALLGRIND_CRASH_QEMU").is_some() { 1 } else { 11 };
    let mut images = 0;
    for cut in 0.. {
        if ask_qemu && cut % every != 0 {
            continue;
        }
        let file = scene::fresh(change);
        let store = MemStorage::over(file.clone());
        let faults = store.faults().clone();
        let image = scene::open(store)?;
        faults.reset();
        faults.from(Target::Any, cut, Fault::Errno(libc::EIO));
        let mut track = Track::new();
        let ended = STEPS.iter().try_for_each(|step| step(&image, &mut track)).is_ok();
        drop(image);
        for (way, left) in MemStorage::over(file).crashes(WAYS) {
            images += 1;
            judge(&left, &track, ask_qemu).map_err(|why| format!("{name}, cut at {cut}, {way:?}: {why}"))?;
        }
        if faults.calls(Target::Any) < cut {
            assert!(ended, "{name}: without a cut the workload fails");
            break;
        }
    }
    assert!(images > 20, "{name}: only {images} images");
    Ok(())
}

fn open_read_only(left: &MemStorage, snapshot: Option<&str>) -> Result<Image, String> {
    let copy = left.crash(Crash::Everything);
    let parts = Parts { file: Box::new(copy), data: None, backing: None };
    let mut options = OpenOptions::new();
    if let Some(name) = snapshot {
        options = options.snapshot(name);
    }
    Image::from_parts(parts, &options).map_err(|error| format!("open: {error}"))
}

fn judge(left: &MemStorage, track: &Track, ask_qemu: bool) -> Result<(), String> {
    let seen = open_read_only(left, None)?;
    let dirty = seen.header().incompatible & 1 != 0;
    let report = seen.check().map_err(|error| error.to_string())?;
    // Version 2 has no dirty bit: a cut snapshot operation may leave COPIED flags unset, which costs
    // copies and no content, and which a check finds nonetheless.
    let old = seen.header().version == 2;
    let excused = dirty || old;
    if report.corruptions > 0 && !excused {
        return Err(format!("corrupt before any repair: {report:?}"));
    }
    let file = left.file().clone();
    let image = scene::open(MemStorage::over(file.clone())).map_err(|error| format!("open: {error}"))?;
    compare(&image, track)?;
    let sound = |report: wallgrind::block::qcow2::Report| match report.corruptions + report.check_errors {
        0 => Ok(()),
        _ => Err(format!("corrupt after reopening: {report:?}")),
    };
    if !old {
        sound(image.check().map_err(|error| error.to_string())?)?;
    }
    // Also before a repair a write must not reach a snapshot.
    image.write(1024, &[0xee; 9000]).map_err(|error| format!("write: {error}"))?;
    image.flush().map_err(|error| format!("flush: {error}"))?;
    let store = MemStorage::over(file);
    snapshots(&store, track)?;
    if old {
        image.repair().map_err(|error| format!("repair: {error}"))?;
    }
    sound(image.check().map_err(|error| error.to_string())?)?;
    drop(image);
    snapshots(&store, track)?;
    if ask_qemu {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = dir.path().join("image.qcow2");
        store.save(&path).map_err(|error| error.to_string())?;
        let (corruptions, _, text) = qemu::check(&path);
        if corruptions > 0 {
            return Err(text);
        }
    }
    Ok(())
}

fn compare(image: &Image, track: &Track) -> Result<(), String> {
    let mut disk = vec![1; image.size() as usize];
    image.read(0, &mut disk).map_err(|error| format!("read: {error}"))?;
    track.judge(&disk).map_or(Ok(()), Err)
}

fn snapshots(store: &MemStorage, track: &Track) -> Result<(), String> {
    let there = open_read_only(store, None)?.snapshots();
    let unsure = track.unsure.iter().filter(|(name, _)| there.iter().any(|s| s.name == *name));
    for (name, content) in track.snapshots.iter().chain(unsure) {
        let image = open_read_only(store, Some(name))?;
        let mut disk = vec![1; image.size() as usize];
        image.read(0, &mut disk).map_err(|error| format!("read {name}: {error}"))?;
        if disk != *content {
            // A snapshot in the making may have any state that its disk had.
            let known = track.unsure.iter().any(|(other, _)| other == name);
            if !known || track.judge(&disk).is_some() {
                return Err(format!("snapshot {name} is not what it was"));
            }
        }
    }
    Ok(())
}
