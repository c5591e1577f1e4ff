// The path of the broker's socket. What leaves this module is a path that the kernel takes.

import { HiveError } from "./error.js";

const DEFAULT_PATH = "/run/hive/hive.sock";

/** The longest path of a unix socket on Linux, in bytes. */
const PATH_BYTES_MAX = 107;

/**
 * Returns the path of a socket, from a path or a URI: `unix:PATH` or `unix:///PATH`.
 * Without an address it takes the environment variable `HIVE_SOCKET`, then `/run/hive/hive.sock`.
 *
 * @throws HiveError INVALID_ARGUMENT if the address cannot be a unix socket
 */
export function socketPath(address = process.env["HIVE_SOCKET"] ?? DEFAULT_PATH): string {
  const invalid = (fault: string, advice: string) =>
    new HiveError("INVALID_ARGUMENT", `The address ${fault}: "${address}". ${advice}`);
  if (typeof address !== "string") throw invalid(`has the type ${typeof address}`, "Pass a path.");
  let path = address;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1];
  if (scheme === "unix") {
    path = address.slice("unix:".length);
    if (path.startsWith("//")) {
      if (!path.startsWith("///")) {
        throw invalid("names a host", "Write unix:PATH or unix:///PATH.");
      }
      path = path.slice(2);
    }
  } else if (scheme !== undefined) {
    const advice = "Give a path or unix:PATH; a relative path with a colon begins with ./";
    throw invalid(`has the scheme ${scheme}, not unix`, advice);
  }
  if (path === "") {
    throw invalid("is empty", "Set HIVE_SOCKET to the path of the socket, or pass it to connect.");
  }
  if (path.includes("\0")) {
    throw invalid("has a null character", "Give the path of a socket in the file system.");
  }
  const length = Buffer.byteLength(path);
  if (length > PATH_BYTES_MAX) {
    const advice = "Make a symbolic link with a short path to its directory.";
    throw invalid(`has ${length} bytes, more than the ${PATH_BYTES_MAX} of a unix socket`, advice);
  }
  return path;
}
