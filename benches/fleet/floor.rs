//! What sending costs when there is nothing else to do: the same bytes, written to as many plain
//! sockets by one thread.

use super::server::on_cpu;
use std::cell::RefCell;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What it took.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Floor {
    /// Sockets that were written to.
    pub sockets: usize,
    /// Bytes for each.
    pub bytes: usize,
    /// CPU seconds of the writing thread.
    pub cpu: f64,
    /// Seconds until the last byte was written.
    pub wall: f64,
}

/// Writes so many bytes to so many sockets; the best of three times.
pub fn measure(sockets: usize, bytes: usize) -> io::Result<Floor> {
    let runs = (0..3).map(|_| once(sockets, bytes)).collect::<io::Result<Vec<Floor>>>()?;
    let best = runs.into_iter().min_by(|a, b| a.cpu.total_cmp(&b.cpu));
    best.ok_or_else(|| io::Error::other("no run"))
}

fn once(sockets: usize, bytes: usize) -> io::Result<Floor> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let readers = std::thread::spawn(move || drain(address, sockets));
    let mut accepted = Vec::with_capacity(sockets);
    for _ in 0..sockets {
        accepted.push(listener.accept()?.0);
    }
    let (cpu, wall) = write(&mut accepted, &vec![0x5a; bytes])?;
    drop(accepted);
    let read = readers.join().map_err(|_| io::Error::other("the readers panicked"))??;
    if read != sockets * bytes {
        return Err(io::Error::other(format!("{read} bytes arrived of {}", sockets * bytes)));
    }
    Ok(Floor { sockets, bytes, cpu: cpu.as_secs_f64(), wall: wall.as_secs_f64() })
}

fn write(sockets: &mut [TcpStream], bytes: &[u8]) -> io::Result<(Duration, Duration)> {
    let cpu = || {
        let time = on_cpu(Path::new("/proc/thread-self"));
        time.ok_or_else(|| io::Error::other("no schedstat in /proc/thread-self"))
    };
    let (start, before) = (Instant::now(), cpu()?);
    for socket in sockets {
        socket.write_all(bytes)?;
    }
    Ok((Duration::from_nanos(cpu()? - before), start.elapsed()))
}

/// Reads all sockets to their ends, and says how many bytes came.
fn drain(address: SocketAddr, sockets: usize) -> io::Result<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let buffer = Rc::new(RefCell::new(vec![0; 256 << 10]));
        let mut readers = Vec::with_capacity(sockets);
        for _ in 0..sockets {
            let stream = tokio::net::TcpStream::connect(address).await?;
            let buffer = buffer.clone();
            readers.push(tokio::task::spawn_local(async move {
                let mut total = 0;
                loop {
                    stream.readable().await?;
                    match stream.try_read(&mut buffer.borrow_mut()[..]) {
                        Ok(0) => return io::Result::Ok(total),
                        Ok(read) => total += read,
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                        Err(e) => return Err(e),
                    }
                }
            }));
        }
        let mut total = 0;
        for reader in readers {
            total += reader.await.map_err(io::Error::other)??;
        }
        Ok(total)
    })
}
