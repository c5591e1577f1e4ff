# Writes hive.toml. In Nix, so that a test without a build sees the text that the programs read.
{ lib }:

let
  # The one character that is plain in JSON and not in TOML.
  delete = builtins.fromJSON ''"\u007f"'';

  text = value: builtins.replaceStrings [ delete ] [ "\\u007f" ] (builtins.toJSON value);
  key = name: if builtins.match "[A-Za-z0-9_-]+" name != null then name else text name;
  pair = name: value: "${key name} = ${scalar value}";
  isTable = value: builtins.isAttrs value && !(value ? outPath);

  # A value in one line.
  scalar =
    value:
    if isTable value then
      "{ ${lib.concatStringsSep ", " (lib.mapAttrsToList pair value)} }"
    else if builtins.isList value then
      "[${lib.concatStringsSep ", " (map scalar value)}]"
    else if builtins.isBool value || builtins.isInt value || builtins.isFloat value then
      builtins.toJSON value
    else
      # A path of Nix is copied to the store.
      text "${value}";

  section =
    path: values:
    lib.concatStringsSep "\n" (
      [ "[${lib.concatStringsSep "." (map key path)}]" ] ++ lib.mapAttrsToList pair values
    )
    + "\n";

  sections =
    name: values:
    if !isTable values then
      [ "${pair name values}\n" ]
    else if name == "agents" then
      lib.mapAttrsToList (
        agent: keys:
        section [
          name
          agent
        ] keys
      ) values
    else
      [ (section [ name ] values) ];
in
# Values outside of a section come first, so that they are in none.
file:
let
  loose = lib.filterAttrs (_: value: !(isTable value)) file;
  tables = lib.filterAttrs (_: isTable) file;
in
lib.concatStringsSep "\n" (
  lib.concatLists (lib.mapAttrsToList sections loose ++ lib.mapAttrsToList sections tables)
)
