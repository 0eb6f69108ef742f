// Tables as CSV (RFC 4180).
const field = value => {
  if (value === undefined || value === null) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export const csvText = (head, rows) => [head, ...rows].map(row => row.map(field).join(",")).join("\r\n") + "\r\n";
