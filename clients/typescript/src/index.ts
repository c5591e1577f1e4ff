// What the package exports. The messages and services of the contract are in `hive-client/v1`.

export { Asked } from "./asked.js";
export { Delivery } from "./delivery.js";
export { HiveError, type FieldViolation } from "./error.js";
export { Follow, type Entry, type FollowOptions, type Position } from "./follow.js";
export {
  connect, EVERYONE, Hive, OPERATOR, PARENT,
  type AnswerOptions, type AskOptions, type ConnectOptions, type RequestOptions, type To,
} from "./hive.js";
export { Mail, type MailOptions } from "./mail.js";
export type { CallOptions } from "./scope.js";
