/** Settings with which no worker starts. The message's first line says where they are, and each further line what is wrong. */
export class WrongSettings extends Error {
  override readonly name = "WrongSettings";
}
