// The stand-in for a chat: prints each post as a line of JSON. It refuses the first one, as a chat
// does that is away for a moment.

import { createServer } from "node:http";
import { json } from "node:stream/consumers";

let isAway = true;
const server = createServer(async (request, response) => {
  const post = await json(request);
  if (isAway) response.statusCode = 503;
  else console.log(JSON.stringify(post));
  isAway = false;
  response.end();
});
server.listen(0, "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
process.once("SIGTERM", () => server.close());
